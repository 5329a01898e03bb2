package quiescence

import (
	"errors"
	"fmt"
	"time"

	"github.com/hduolab/quell/controller/storm/live"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Any stands for every group, or every kind of a group, in Options.Kinds; leases and events are not among them.
const Any = live.Any

// Options of Check; every zero value but Kinds stands for its default.
type Options struct {
	// Kinds of objects that have to be quiet; required. Group and Kind as manifests have them, or Any.
	Kinds []schema.GroupKind
	// Namespaces to look at. Without any it is all, and objects that belong to no namespace.
	Namespaces []string
	// Settle is for how long nothing must have been written before the operator counts as converged. Default 3s: longer than the
	// second by which managedFields and most timestamps are cut, so that a stamp of that resolution shows.
	Settle time.Duration
	// Patience is how long to wait for that. Default 2m.
	Patience time.Duration
	// Hold is for how long nothing must be written from then on. Default 10s; it should be longer than the operator's own resync or
	// requeue interval.
	Hold time.Duration
	// Ignore, unless nil, picks writes that do not count, such as those of a manager under whose load the operator is to be quiet.
	Ignore func(Write) bool
}

func (o Options) withDefaults() Options {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&o.Settle, 3 * time.Second}, {&o.Patience, 2 * time.Minute}, {&o.Hold, 10 * time.Second}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if o.Ignore == nil {
		o.Ignore = func(Write) bool { return false }
	}
	return o
}

func (o Options) validate() error {
	if len(o.Kinds) == 0 {
		return errors.New("quiescence: Options.Kinds is empty: name the kinds that have to be quiet")
	}
	for name, d := range map[string]time.Duration{"Settle": o.Settle, "Patience": o.Patience, "Hold": o.Hold} {
		if d < 0 {
			return fmt.Errorf("quiescence: Options.%s is %s, which is negative", name, d)
		}
	}
	if o.Patience < o.Settle {
		return fmt.Errorf("quiescence: Options.Patience, %s, is shorter than Options.Settle, %s", o.Patience, o.Settle)
	}
	return nil
}
