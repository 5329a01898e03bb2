package storm

import (
	"slices"
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
	// seesValues is false where only metadata were known, look is the one at which the values were seen.
	seesValues bool
	look       int
	// hasGeneration is whether generations were known, risen whether it rose.
	hasGeneration, risen bool
	isRecreation         bool
}

// track is what is kept of a hot object.
type track struct {
	uid     types.UID
	last    *Change
	entries []fieldowners.Entry
	// whole is the latest version whose values were seen.
	whole *Change
	// samples from the oldest on.
	samples []sample
	// writer of the latest version.
	writer fieldowners.Owner
	// look counts the times that versions with values came after others.
	look int
	// gaps is how often the stream was interrupted, after which one version stands for any number of writes.
	gaps int
}

// observe takes the next version of the object. The first one, and one after a gap, is only what the next is compared with.
func (t *track) observe(c Change, o Options) {
	if c.Type == Deleted {
		t.last, t.entries = nil, nil
		return
	}
	entries := t.parse(&c)
	t.writer = writerIn(&c)
	if c.Object != nil && t.last != nil && t.last.Object == nil {
		t.look++
	}
	switch {
	case c.Type == Listed:
		t.gaps++
	case t.uid != "" && c.UID != "" && t.uid != c.UID:
		t.keep(sample{when: c.Time, writer: firstOf(&c, entries), isRecreation: true, seesValues: c.Object != nil}, o)
	case t.last != nil:
		t.keep(t.compare(&c, entries), o)
	}
	t.uid, t.last, t.entries = c.UID, &c, entries
	if c.Object != nil {
		t.whole = &c
	}
}

// interrupt has the next version be only what the one after it is compared with.
func (t *track) interrupt() {
	t.gaps++
	t.uid, t.last, t.entries = "", nil, nil
}

// complete takes the values of the version that was the latest by its metadata.
func (t *track) complete(c *Change) {
	if c.Object != nil && t.last != nil && t.last.Object == nil && t.last.ResourceVersion == c.ResourceVersion {
		t.look++
		t.last.Object = c.Object
		t.whole = t.last
	}
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

// keep adds a sample in place of the oldest, which is one without values as long as there is any: a look at the values is not
// forgotten over what followed without them, only over the next look.
func (t *track) keep(s sample, o Options) {
	t.writer, s.look = s.writer, t.look
	if s.seesValues {
		t.settle(o.MinSamples)
	}
	if len(t.samples) >= o.Window {
		oldest := slices.IndexFunc(t.samples, func(s sample) bool { return !s.seesValues })
		if oldest < 0 && !s.seesValues {
			return
		}
		t.samples = slices.Delete(t.samples, max(0, oldest), max(0, oldest)+1)
	}
	t.samples = append(t.samples, s)
}

// settle forgets earlier looks once this one suffices.
func (t *track) settle(enough int) {
	earlier, current := 0, 0
	for i := range t.samples {
		isEarlier := t.samples[i].look < t.look
		earlier += b2i(t.samples[i].seesValues && isEarlier)
		current += b2i(t.samples[i].seesValues && !isEarlier)
	}
	if earlier > 0 && current >= enough {
		t.samples = slices.DeleteFunc(t.samples, func(s sample) bool { return s.seesValues && s.look < t.look })
	}
}

// valued are the samples whose values were seen.
func (t *track) valued() []sample {
	return slices.DeleteFunc(slices.Clone(t.samples), func(s sample) bool { return !s.seesValues })
}
