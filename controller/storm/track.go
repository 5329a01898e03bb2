package storm

import (
	"time"

	"github.com/hduolab/quell/controller/fieldowners"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// sample is one write to a hot object: what it changed and who made it.
type sample struct {
	when     time.Time
	writer   fieldowners.Owner
	isLikely bool
	changes  []fieldChange
	// more changes than were kept.
	more int
	// seesValues is false where only metadata were known.
	seesValues bool
	// hasGeneration is whether generations were known, risen whether it rose.
	hasGeneration, risen bool
	isRecreation         bool
}

// track is what is kept of a hot object.
type track struct {
	uid     types.UID
	last    *Change
	entries []fieldowners.Entry
	samples []sample
	next    int
	// gaps is how often the stream was interrupted, after which one version stands for any number of writes.
	gaps int
}

// observe takes the next version of the object. The first one, and one after a gap, is only what the next is compared with.
func (t *track) observe(c Change, window int) {
	if c.Type == Deleted {
		t.last, t.entries = nil, nil
		return
	}
	entries := t.parse(&c)
	switch {
	case c.Type == Listed:
		t.gaps++
	case t.uid != "" && c.UID != "" && t.uid != c.UID:
		t.keep(sample{when: c.Time, writer: firstOf(&c, entries), isRecreation: true, seesValues: c.Object != nil}, window)
	case t.last != nil:
		t.keep(t.compare(&c, entries), window)
	}
	t.uid, t.last, t.entries = c.UID, &c, entries
}

func (t *track) parse(c *Change) []fieldowners.Entry {
	if t.last == nil {
		return fieldowners.Parse(c.ManagedFields)
	}
	return parse(c.ManagedFields, t.last.ManagedFields, t.entries)
}

// firstOf is who created an object.
func firstOf(c *Change, entries []fieldowners.Entry) fieldowners.Owner {
	if c.Writer != nil {
		return *c.Writer
	}
	owner, _ := newest(entries)
	return owner
}

func (t *track) compare(c *Change, entries []fieldowners.Entry) sample {
	s := sample{when: c.Time, seesValues: c.Object != nil && t.last.Object != nil}
	s.hasGeneration = c.Generation != 0 && t.last.Generation != 0
	s.risen = s.hasGeneration && c.Generation > t.last.Generation
	diff := comparison{resource: c.GroupResource}
	if s.seesValues {
		diff.compare(t.last.Object, c.Object, t.entries, entries)
	} else {
		diff.compareOwners(t.entries, entries)
	}
	s.changes, s.more = diff.changes, diff.more
	if c.Writer != nil {
		s.writer = *c.Writer
		return s
	}
	paths := make([]fieldpath.Path, len(s.changes))
	for i := range s.changes {
		paths[i] = s.changes[i].path
	}
	s.writer, s.isLikely = writerOf(t.entries, entries, paths, s.seesValues)
	return s
}

// keep adds a sample in place of the oldest.
func (t *track) keep(s sample, window int) {
	if len(t.samples) < window {
		t.samples = append(t.samples, s)
		return
	}
	t.samples[t.next] = s
	t.next = (t.next + 1) % window
}

// window are the samples from the oldest on.
func (t *track) window() []sample {
	ordered := make([]sample, 0, len(t.samples))
	return append(append(ordered, t.samples[t.next:]...), t.samples[:t.next]...)
}
