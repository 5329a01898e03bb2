package storm

import (
	"cmp"
	"slices"
	"time"
)

// Suspect is an object that is written often enough for its values to be worth a look.
type Suspect struct {
	Object Key
	// Rate of its writes per second.
	Rate float64
	// Version is the resourceVersion seen last, and Before the one before it, empty if there was none: a watch from Before on
	// begins with Version.
	Version, Before string
}

// fewWrites is from how many writes on an object can be a suspect: created and written once more it is not.
const fewWrites = 3

// Suspects are the hot objects that are written at half the rate of a storm at least, or by a writer who does so over all
// objects; the hottest first.
func (d *Detector) Suspects(now time.Time) []Suspect {
	if now.After(d.now) {
		d.now = now
	}
	var found []Suspect
	for key, s := range d.hot {
		rate := s.meter.Rate(d.now)
		if s.meter.Count < fewWrites || d.options.isKnown(key.GroupResource) {
			continue
		}
		if rate >= d.options.Rate/2 || d.writerRate(s.track.writer) >= d.options.WriterRate/2 {
			found = append(found, Suspect{key, rate, s.version, s.before})
		}
	}
	slices.SortFunc(found, func(a, b Suspect) int {
		return cmp.Or(cmp.Compare(b.Rate, a.Rate), cmp.Compare(a.Object.String(), b.Object.String()))
	})
	return found
}
