package quiescence

import (
	"sync"
	"time"

	"github.com/hduolab/quell/controller/storm"
)

// Action is what a write did to an object as a whole.
type Action string

// The actions.
const (
	Created Action = "created"
	Changed Action = "changed"
	Deleted Action = "deleted"
)

// Write is one write that was seen.
type Write struct {
	Object storm.Key
	Action Action
	// Time at which it was seen.
	Time time.Time
	// Difference between the versions before and after; of a creation it names the writer only, of a deletion nothing.
	storm.Difference
}

// maxWrites is how many writes are kept to be told.
const maxWrites = 20

// record keeps account of the writes since quiet last forgot them.
type record struct {
	ignore func(Write) bool
	// wake is filled at each write.
	wake chan struct{}

	mu       sync.Mutex
	detector *storm.Detector
	writes   []Write
	count    int
	last     time.Time
	// written are the objects with writes that count.
	written map[storm.Key]bool
}

func newRecord(ignore func(Write) bool) *record {
	return &record{ignore: ignore, wake: make(chan struct{}, 1), detector: storm.New(storm.Options{}), written: map[storm.Key]bool{}}
}

// list takes what was there when the watch began.
func (r *record) list(version storm.Change) {
	version.Type = storm.Listed
	r.mu.Lock()
	defer r.mu.Unlock()
	r.detector.Observe(version)
}

// add takes a write and the change by which it was seen.
func (r *record) add(w Write, change storm.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.detector.Observe(change)
	if r.ignore(w) {
		return
	}
	r.count++
	r.last = w.Time
	r.written[w.Object] = true
	if len(r.writes) < maxWrites {
		r.writes = append(r.writes, w)
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// quiet is for how long nothing has been written, at most since began. When that is enough, the writes so far are forgotten, in
// one step, so that no later one is forgotten with them.
func (r *record) quiet(began time.Time, enough time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last.After(began) {
		began = r.last
	}
	quiet := time.Since(began)
	if quiet >= enough {
		r.writes, r.count = nil, 0
		clear(r.written)
	}
	return quiet
}

// first is when the first write was seen; zero without any.
func (r *record) first() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.writes) == 0 {
		return time.Time{}
	}
	return r.writes[0].Time
}

// error tells the writes since quiet last forgot them.
func (r *record) error(reason string) *NotQuiet {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := &NotQuiet{Reason: reason, Writes: r.writes, Count: r.count}
	for _, f := range r.detector.Report(time.Now()).Findings {
		if r.written[f.Object] && f.Verdict != storm.TooLittleEvidence {
			e.Findings = append(e.Findings, f)
		}
	}
	return e
}
