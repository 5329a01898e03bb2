package lookout

import (
	"cmp"
	"slices"
	"time"

	"github.com/hduolab/quell/controller/storm"
)

// maxStorms is how many storms a session remembers.
const maxStorms = 200

// history are the storms of a session, also those that are over. The zero value is ready.
type history struct {
	storms map[storm.Key]*spell
}

// calm is how long no storm must be seen on an object before its storm has ended: rates and verdicts near their thresholds go to
// and fro.
const calm = 10 * time.Second

// spell is the time for which an object storms. It is as it was last seen.
type spell struct {
	finding     storm.Finding
	found, seen time.Time
	// ended is when the storm was seen last, zero while it goes on or has not been missed for long.
	ended time.Time
}

func (s *spell) isOver() bool { return !s.ended.IsZero() }

// turn is what happened to a storm.
type turn string

const (
	begins  turn = "storm"
	changes turn = "other verdict"
	ends    turn = "end"
)

// happening is a turn with what the verdict was before.
type happening struct {
	turn   turn
	spell  spell
	before storm.Verdict
}

// observe takes the next report and tells what is new in it.
func (h *history) observe(findings []storm.Finding, now time.Time) []happening {
	if h.storms == nil {
		h.storms = map[storm.Key]*spell{}
	}
	var news []happening
	on := map[storm.Key]bool{}
	for _, f := range findings {
		if !f.IsStorm {
			continue
		}
		on[f.Object] = true
		if happened, is := h.next(f, now); is {
			news = append(news, happened)
		}
	}
	for key, s := range h.storms {
		if !on[key] && !s.isOver() && now.Sub(s.seen) >= calm {
			s.ended = s.seen
			news = append(news, happening{ends, *s, s.finding.Verdict})
		}
	}
	slices.SortStableFunc(news, func(a, b happening) int {
		return cmp.Or(cmp.Compare(a.turn, b.turn), compare(&a.spell, &b.spell))
	})
	h.trim()
	return news
}

func (h *history) next(f storm.Finding, now time.Time) (happening, bool) {
	s, known := h.storms[f.Object]
	if !known {
		s = &spell{found: now}
		h.storms[f.Object] = s
	}
	before := s.finding.Verdict
	again := s.isOver()
	s.finding, s.seen, s.ended = f, now, time.Time{}
	switch {
	case !known || again:
		return happening{begins, *s, before}, true
	case before != f.Verdict:
		return happening{changes, *s, before}, true
	}
	return happening{}, false
}

// trim forgets the mildest storms beyond maxStorms, those that are over first.
func (h *history) trim() {
	if len(h.storms) <= maxStorms {
		return
	}
	for _, s := range h.ranked()[maxStorms:] {
		delete(h.storms, s.finding.Object)
	}
}

// ranked are the storms that go on, by their rate, and those that are over, by their peak.
func (h *history) ranked() []*spell {
	var all []*spell
	for _, s := range h.storms {
		all = append(all, s)
	}
	slices.SortFunc(all, compare)
	return all
}

func compare(a, b *spell) int {
	if a.isOver() != b.isOver() {
		if a.isOver() {
			return 1
		}
		return -1
	}
	byRate := cmp.Compare(b.finding.Rate, a.finding.Rate)
	if a.isOver() {
		byRate = cmp.Compare(b.finding.Peak, a.finding.Peak)
	}
	return cmp.Or(byRate, cmp.Compare(a.finding.Object.String(), b.finding.Object.String()))
}
