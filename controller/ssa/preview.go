package ssa

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/hduolab/quell/controller/fieldowners"
)

// Preview is what an Apply would be for.
type Preview struct {
	// Reasons would make Apply send a request, or keep it from one by rule Report. Empty when the object is as desired, and for one
	// that does not exist.
	Reasons []Reason
	// Values are the paths that would get another value, sorted, for a field that is given up may keep its value. What live lacks
	// altogether is one path.
	Values []string
	// Kept are the list items of others, sorted, in lists to which the desired state adds its own.
	Kept []string
	// Yielded are the fields that Apply would leave to others.
	Yielded []Reason
}

// Preview compares the object with the desired state as Apply does, sends nothing to change it, and changes nothing that an
// Apply goes by. It reads past the cache where Apply would, when live is older than our own last write and the answer to that is
// gone. What admission or a validation would make of it, it cannot tell. An error says that they cannot be compared;
// IsTerminal tells whether trying again is pointless.
func (a *Applier) Preview(ctx context.Context, in Intent) (Preview, error) {
	if isNil(in.Live) {
		return Preview{}, nil
	}
	sent, err := identify(in.Desired)
	if err != nil {
		return Preview{}, err
	}
	c := &call{Applier: a, Intent: in, sent: in.Rules.mark(sent), now: a.opts.Clock.Now(), record: a.memory.of(in.Live.GetUID())}
	defer c.record.Unlock()
	if c.remembered() {
		return Preview{Yielded: c.record.yielded}, nil
	}
	return c.preview(ctx)
}

func (c *call) preview(ctx context.Context) (Preview, error) {
	raw, err := encode(c.Desired)
	if err != nil {
		return Preview{}, err
	}
	u, err := decode(raw, c.opts.Subresource)
	if err != nil {
		return Preview{}, err
	}
	c.content = &content{object: u}
	if err := c.sameVersion(); err != nil {
		return Preview{}, err
	}
	if c.isBehind() {
		defer func(doubt bool, last digest) { c.record.doubt, c.record.last = doubt, last }(c.record.doubt, c.record.last)
		if _, err := c.catchUp(ctx); err != nil {
			return Preview{}, err
		}
	}
	if c.content, err = newContent(u, c.opts.Types, c.opts.Subresource); err != nil {
		return Preview{}, err
	}
	c.digest = c.Rules.mark(c.digest)
	c.surplus = c.knownSurplus()
	if err := c.findReasons(); err != nil {
		return Preview{}, err
	}
	for _, x := range c.result.Conflicts {
		c.result.Reasons = append(c.result.Reasons, Reason{Change: Taken, Path: x.Path, Owners: []fieldowners.Owner{x.Owner}})
	}
	p := Preview{Reasons: c.result.Reasons, Yielded: c.result.Yielded}
	live, _, err := c.typedOf(c.Live)
	if err != nil {
		return Preview{}, err
	}
	if p.Values, err = c.changingValues(live); err != nil {
		return Preview{}, err
	}
	p.Kept, err = c.keptItems(live)
	return p, err
}

// keptItems are the items in live's lists that are not ours, where the content has the list too.
func (c *call) keptItems(live *typed.TypedValue) ([]string, error) {
	there, err := live.ToFieldSet()
	if err != nil {
		return nil, fmt.Errorf("fields of live object: %w", err)
	}
	mine := c.fields
	if entry, found := fieldowners.Find(c.entries, c.owner()); found {
		mine = mine.Union(entry.Fields)
	}
	ours := map[string]bool{}
	mine.Iterate(func(p fieldpath.Path) {
		for i := range p {
			ours[p[:i+1].String()] = true
		}
	})
	kept := map[string]bool{}
	there.Iterate(func(p fieldpath.Path) {
		for i, e := range p {
			if e.FieldName == nil && ours[p[:i].String()] && !ours[p[:i+1].String()] {
				kept[fieldowners.FormatPath(p[:i+1])] = true
			}
		}
	})
	return slices.Sorted(maps.Keys(kept)), nil
}

// changingValues are the paths that an apply would give another value.
func (c *call) changingValues(live *typed.TypedValue) ([]string, error) {
	v, err := compare(c.content, live)
	if err != nil {
		return nil, err
	}
	changing := v.differing
	if v.surplus != c.surplus {
		changing = changing.Union(v.fuller)
	}
	var values []string
	changing.Leaves().Iterate(func(p fieldpath.Path) { values = append(values, fieldowners.FormatPath(outermost(p, live.AsValue()))) })
	slices.Sort(values)
	return slices.Compact(values), nil
}

// outermost is the shortest part of a path that live does not have, the path itself when live has it.
func outermost(p fieldpath.Path, live value.Value) fieldpath.Path {
	for i := range p {
		if at(live, p[:i+1]) == nil {
			return p[:i+1]
		}
	}
	return p
}
