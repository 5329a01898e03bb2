// Package timeline keeps how much happened when, by key, in bounded memory: one number for each step of time, of all and of the
// keys that occur most. When the steps are used up, two become one.
package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/hduolab/quell/controller/storm"
)

// step is the shortest one.
const step = time.Second

// Timeline counts by time. It is not safe for concurrent use.
type Timeline[K comparable] struct {
	steps int
	// from is where the first step begins; what is older counts in it.
	from, to time.Time
	step     time.Duration
	// used is how many steps have begun.
	used  int
	total []float64
	lines *storm.Sketch[K, []float64]
}

// New makes a timeline of an even number of steps, at first of a second each, for a number of keys. A key that occurs less often
// than others may lose its place to them; what it counted is then part of the rest.
func New[K comparable](steps, keys int) *Timeline[K] {
	return &Timeline[K]{steps: max(2, steps+steps%2), step: step, lines: storm.NewSketch[K, []float64](keys, 0, nil)}
}

// Add counts n of a key, spread evenly from one time to another, which may be the same. What belongs to no key as well is for
// AddTotal to count.
func (t *Timeline[K]) Add(key K, from, to time.Time, n float64) {
	t.reach(from, to)
	line := t.lines.Add(key, to)
	if *line == nil {
		*line = make([]float64, t.steps)
	}
	t.spread(from, to, func(i int, share float64) { (*line)[i] += n * share })
}

// AddTotal counts n of all keys together, in the same way.
func (t *Timeline[K]) AddTotal(from, to time.Time, n float64) {
	t.reach(from, to)
	t.spread(from, to, func(i int, share float64) { t.total[i] += n * share })
}

// reach has the steps reach up to a time.
func (t *Timeline[K]) reach(from, to time.Time) {
	if t.total == nil {
		t.from, t.total = from.Truncate(step), make([]float64, t.steps)
	}
	if to.After(t.to) {
		t.to = to
	}
	for t.index(to) >= t.steps {
		t.halve()
	}
}

// spread calls with each step between two times and its share of them.
func (t *Timeline[K]) spread(from, to time.Time, add func(i int, share float64)) {
	first, last := t.index(from), t.index(to)
	if last > first && to.Equal(t.from.Add(time.Duration(last)*t.step)) {
		last-- // which has just begun
	}
	t.used = max(t.used, last+1)
	if first >= last {
		add(last, 1)
		return
	}
	whole := to.Sub(from).Seconds()
	for i := first; i <= last; i++ {
		begin, end := t.from.Add(time.Duration(i)*t.step), t.from.Add(time.Duration(i+1)*t.step)
		if i == first { // also with what is older than the first step
			begin = from
		}
		if to.Before(end) {
			end = to
		}
		add(i, end.Sub(begin).Seconds()/whole)
	}
}

func (t *Timeline[K]) index(when time.Time) int { return max(0, int(when.Sub(t.from)/t.step)) }

// halve makes each step twice as long.
func (t *Timeline[K]) halve() {
	t.step *= 2
	t.used = (t.used + 1) / 2
	fold(t.total)
	for _, line := range t.lines.Top(-1) {
		fold(*line.Data)
	}
}

func fold(line []float64) {
	half := len(line) / 2
	for i := range half {
		line[i] = line[2*i] + line[2*i+1]
	}
	clear(line[half:])
}

// Rates are what happened per second in each step of time.
type Rates[K comparable] struct {
	// From is where the first step begins, To the latest time that was counted.
	From, To time.Time
	Step     time.Duration
	// Lines of the keys with most, in this order.
	Lines []Line[K]
	// Rest is all that no line has, and Others whether that is anything.
	Rest   []float64
	Others bool
}

// Line is that of one key.
type Line[K comparable] struct {
	Key       K
	PerSecond []float64
}

// Rates gives the lines of the top keys, up to the last step that is half over at least. It changes nothing.
func (t *Timeline[K]) Rates(top int) Rates[K] {
	r := Rates[K]{From: t.from, To: t.to, Step: t.step}
	if t.total == nil {
		return r
	}
	n := t.used
	if begun := t.to.Sub(t.from.Add(time.Duration(n-1) * t.step)); n > 1 && begun < t.step/2 {
		n-- // too short to tell a rate
	}
	ranked := t.lines.Top(-1)
	sums := make(map[K]float64, len(ranked))
	for _, line := range ranked {
		sums[line.Key] = sum(*line.Data)
	}
	slices.SortFunc(ranked, func(a, b storm.Ranked[K, []float64]) int {
		return cmp.Or(cmp.Compare(sums[b.Key], sums[a.Key]), cmp.Compare(fmt.Sprint(a.Key), fmt.Sprint(b.Key)))
	})
	rest := slices.Clone(t.total[:n])
	for _, line := range ranked[:min(top, len(ranked))] {
		values := (*line.Data)[:n]
		for i, v := range values {
			rest[i] = max(0, rest[i]-v)
		}
		r.Lines = append(r.Lines, Line[K]{line.Key, t.perSecond(values)})
	}
	r.Rest = t.perSecond(rest)
	const negligible = 1e-6 // of sums of fractions
	r.Others = sum(rest) > negligible*sum(t.total)
	return r
}

func sum(values []float64) float64 {
	total := 0.0
	for _, v := range values {
		total += v
	}
	return total
}

// perSecond divides by the length of the steps, of which the last may not be over yet.
func (t *Timeline[K]) perSecond(values []float64) []float64 {
	rates := make([]float64, len(values))
	for i, v := range values {
		length := t.step
		if i == len(values)-1 {
			length = max(step/2, min(length, t.to.Sub(t.from.Add(time.Duration(i)*t.step))))
		}
		rates[i] = v / length.Seconds()
	}
	return rates
}
