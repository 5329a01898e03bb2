package storm

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"time"
)

// Sketch finds the keys that occur most in a stream of any number of keys, with a fixed number of counters. It is Space-Saving
// (Metwally, Agrawal, El Abbadi: Efficient Computation of Frequent and Top-k Elements in Data Streams, ICDT 2005) with weights
// that decay by forward decay (Cormode, Shkapenyuk, Srivastava, Xu: Forward Decay, ICDE 2009): each occurrence counts as
// 2^-(age/half-life), and with no half-life as 1.
//
// With k counters and a total weight of W: no counter is below the true weight of its key or more than its Error above it, no
// Error exceeds W/k, and every key heavier than W/k has a counter. While no more than k keys occurred, all weights are exact.
//
// A counter carries data D of the caller, which starts anew when the counter passes to another key. A Sketch is not safe for
// concurrent use.
type Sketch[K comparable, D any] struct {
	capacity int
	half     time.Duration
	evicted  func(K, *D)
	counters map[K]*counter[K, D]
	lightest lightest[K, D]
	total    float64
	origin   time.Time
	last     time.Time
}

// Ranked is a key with its weight at the time of the last occurrence in the stream.
type Ranked[K comparable, D any] struct {
	Key K
	// Weight is never below the true one, and at most Error above it.
	Weight, Error float64
	// Data of the counter; it may be changed in place.
	Data *D
}

type counter[K comparable, D any] struct {
	key           K
	weight, error float64
	place         int
	data          D
}

// NewSketch makes a sketch of capacity counters, at least one. With a half-life of 0 nothing decays. evicted, unless nil, is told
// of each key that loses its counter.
func NewSketch[K comparable, D any](capacity int, half time.Duration, evicted func(K, *D)) *Sketch[K, D] {
	return &Sketch[K, D]{capacity: max(1, capacity), half: half, evicted: evicted, counters: map[K]*counter[K, D]{}}
}

// Add counts an occurrence and returns its key's data. Time does not run backwards here: an occurrence before the latest one
// counts as of that time.
func (s *Sketch[K, D]) Add(key K, when time.Time) *D {
	unit := s.unit(when)
	s.total += unit
	c := s.counters[key]
	if c == nil {
		c = s.occupy(key)
	}
	c.weight += unit
	heap.Fix(&s.lightest, c.place)
	return &c.data
}

// occupy finds a counter for a new key: a free one, else the lightest.
func (s *Sketch[K, D]) occupy(key K) *counter[K, D] {
	if len(s.lightest) < s.capacity {
		c := &counter[K, D]{key: key}
		s.counters[key] = c
		heap.Push(&s.lightest, c)
		return c
	}
	c := s.lightest[0]
	delete(s.counters, c.key)
	if s.evicted != nil {
		s.evicted(c.key, &c.data)
	}
	var none D
	c.key, c.error, c.data = key, c.weight, none
	s.counters[key] = c
	return c
}

// maxDoublings is how many half-lives the weights may run up before they are scaled down, far below a float's 1023.
const maxDoublings = 256

// unit is the weight of an occurrence now, relative to one at the origin.
func (s *Sketch[K, D]) unit(when time.Time) float64 {
	if when.After(s.last) {
		s.last = when
	}
	if s.half <= 0 {
		return 1
	}
	if s.origin.IsZero() {
		s.origin = s.last
	}
	doublings := float64(s.last.Sub(s.origin)) / float64(s.half)
	if doublings > maxDoublings {
		s.scale(math.Exp2(-doublings))
		s.origin = s.last
		return 1
	}
	return math.Exp2(doublings)
}

func (s *Sketch[K, D]) scale(factor float64) {
	s.total *= factor
	for _, c := range s.lightest {
		c.weight *= factor
		c.error *= factor
	}
	heap.Init(&s.lightest) // tiny weights may have become equal
}

// Data returns the data of a key that has a counter, else nil.
func (s *Sketch[K, D]) Data(key K) *D {
	if c := s.counters[key]; c != nil {
		return &c.data
	}
	return nil
}

// Len is the number of counters in use.
func (s *Sketch[K, D]) Len() int { return len(s.lightest) }

// Total is the weight of the whole stream.
func (s *Sketch[K, D]) Total() float64 { return s.total / s.unit(s.last) }

// Bound is the largest Error that any key can have.
func (s *Sketch[K, D]) Bound() float64 {
	if len(s.lightest) < s.capacity {
		return 0
	}
	return s.Total() / float64(s.capacity)
}

// Top returns the n heaviest keys, the heaviest first; all of them with n < 0. Equal weights come in any order.
func (s *Sketch[K, D]) Top(n int) []Ranked[K, D] {
	unit := s.unit(s.last)
	all := make([]Ranked[K, D], 0, len(s.lightest))
	for _, c := range s.lightest {
		all = append(all, Ranked[K, D]{Key: c.key, Weight: c.weight / unit, Error: c.error / unit, Data: &c.data})
	}
	slices.SortFunc(all, func(a, b Ranked[K, D]) int { return cmp.Compare(b.Weight, a.Weight) })
	if n >= 0 && n < len(all) {
		all = all[:n]
	}
	return all
}

// lightest is a heap of counters, the lightest first.
type lightest[K comparable, D any] []*counter[K, D]

func (l lightest[K, D]) Len() int           { return len(l) }
func (l lightest[K, D]) Less(i, j int) bool { return l[i].weight < l[j].weight }

func (l lightest[K, D]) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].place, l[j].place = i, j
}

// Push is for package heap.
func (l *lightest[K, D]) Push(x any) {
	c := x.(*counter[K, D])
	c.place = len(*l)
	*l = append(*l, c)
}

// Pop is for package heap; counters pass on to other keys and are never removed.
func (l *lightest[K, D]) Pop() any {
	last := len(*l) - 1
	c := (*l)[last]
	*l = (*l)[:last]
	return c
}
