package ssa

import (
	"context"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// StatusOptions configure a StatusWriter beyond what an Applier needs.
type StatusOptions struct {
	// Options of the applier underneath; Subresource is set to "status".
	Options
	// Details are fields directly under status, such as replica counts, whose change alone, and that of what is in them, waits
	// until Settle has passed since the last write. A change of anything else is written at once, and the details with it.
	Details []string
	// Settle is that time; zero writes details at once too.
	Settle time.Duration
	// Incidental are fields directly under status that tell of the writer, such as its version, and stay the same while a process runs.
	// That they would change, or were removed, is no reason to write, and the outcome is Unchanged; the next write of anything else
	// brings them along. What others took is taken back.
	Incidental []string
}

// StatusWriter applies the status of one kind under one field manager. It is an Applier for the status subresource that
// also sets the transition times of the conditions in status.conditions. Safe for concurrent use.
type StatusWriter struct {
	applier             *Applier
	details, incidental []string
	settle              time.Duration
}

// NewStatusWriter returns a StatusWriter, or an error that names the option that is missing or out of range.
func NewStatusWriter(o StatusOptions) (*StatusWriter, error) {
	o.Subresource = "status"
	applier, err := NewApplier(o.Options)
	if err != nil {
		return nil, err
	}
	return &StatusWriter{applier: applier, details: o.Details, incidental: o.Incidental, settle: o.Settle}, nil
}

// Write brings the status of Intent.Live to Intent.Desired: the whole object's apply configuration with nothing but its name,
// namespace and complete status. Leave lastTransitionTime out of the conditions; what is there is replaced. Conditions,
// fields and list items of other managers are left alone.
//
// Result and error are those of Applier.Apply. Call again after Result.RetryAfter when something was held back: our own
// writes wake nobody up.
func (w *StatusWriter) Write(ctx context.Context, in Intent) (Result, error) {
	return w.applier.apply(ctx, in, finish{complete: carryTransitionTimes, settle: w.wait, incidental: w.isIncidental})
}

// Newest is the newest version of an object that is known without a request: what the API server answered to the last write while
// the cache is behind it, for a minute at most, else live itself. What a status says that has to be kept has to be read from it.
func (w *StatusWriter) Newest(live client.Object) client.Object {
	answer := w.applier.memory.answer(live.GetUID(), w.applier.opts.Clock.Now())
	if answer != nil && isOlder(live.GetResourceVersion(), answer.GetResourceVersion()) {
		return answer
	}
	return live
}

// SchemaChanged is Applier.SchemaChanged.
func (w *StatusWriter) SchemaChanged() { w.applier.SchemaChanged() }

// wait is how long details still have to settle.
func (w *StatusWriter) wait(c *call) time.Duration {
	rest := w.settle - c.record.age(c.now)
	if rest <= 0 || c.inPlaceBefore() || slices.ContainsFunc(c.result.Reasons, w.counts) {
		return 0
	}
	return rest
}

// counts reports whether a reason is more than a detail.
func (w *StatusWriter) counts(r Reason) bool {
	return r.Change == Taken || !slices.Contains(w.details, statusField(r)) && !w.isIncidental(r)
}

func (w *StatusWriter) isIncidental(r Reason) bool {
	return r.Change != Taken && r.Change != Shared && slices.Contains(w.incidental, statusField(r))
}

// statusField is the field directly under status that a reason is about.
func statusField(r Reason) string {
	field := strings.TrimPrefix(r.Path, ".status.")
	if end := strings.IndexAny(field, ".["); end >= 0 {
		field = field[:end]
	}
	return field
}
