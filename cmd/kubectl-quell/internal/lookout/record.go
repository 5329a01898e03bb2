package lookout

import (
	"time"

	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/hduolab/quell/controller/storm"
	"github.com/hduolab/quell/controller/storm/timeline"
)

const (
	// recordSteps is how many points a plot has at most, and recordKeys how many lines are kept to choose the top ones from.
	recordSteps, recordKeys = 600, 64
	// maxKnown is how many keys' counts are known from one report to the next.
	maxKnown = 8192
)

// record is how much was written when, for plots.
type record struct {
	objects  track[storm.Key]
	managers track[fieldowners.Owner]
	last     time.Time
	writes   int64
}

// track makes counts that only rise into a timeline.
type track[K comparable] struct {
	*timeline.Timeline[K]
	// known are the counts of all keys, latest those of the latest report.
	known, latest map[K]int64
}

func newRecord(from time.Time) *record {
	return &record{objects: newTrack[storm.Key](), managers: newTrack[fieldowners.Owner](), last: from}
}

func newTrack[K comparable]() track[K] {
	return track[K]{timeline.New[K](recordSteps, recordKeys), map[K]int64{}, map[K]int64{}}
}

// add takes the counts of a report.
func (r *record) add(report storm.Report, now time.Time) {
	total := float64(report.Writes - r.writes)
	r.objects.AddTotal(r.last, now, total)
	r.managers.AddTotal(r.last, now, total)
	r.objects.trim()
	for _, f := range report.Findings {
		r.objects.add(f.Object, f.Writes, earlier(f.First, r.last), r.last, now)
	}
	r.managers.trim()
	for _, m := range report.Managers {
		r.managers.add(m.Key, m.Writes, r.last, r.last, now)
	}
	r.last, r.writes = now, report.Writes
}

// trim forgets keys that the last report did not have, once there are too many. If one comes back, what it had counted is drawn
// again; it takes thousands of busy keys for that.
func (t *track[K]) trim() {
	if len(t.known) > maxKnown {
		t.known = t.latest
	}
	t.latest = map[K]int64{}
}

// add takes the count of a key. What was counted before the key was known is spread from when it began.
func (t *track[K]) add(key K, count int64, began, last, now time.Time) {
	before, known := t.known[key]
	switch {
	case !known:
		last = began
	case count < before: // the counter had passed to others in between
		before = 0
	}
	t.known[key], t.latest[key] = count, count
	if count > before {
		t.Add(key, last, now, float64(count-before))
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
