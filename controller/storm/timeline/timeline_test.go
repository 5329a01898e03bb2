package timeline_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/hduolab/quell/controller/storm/timeline"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

// both counts a key and the total.
func both[K comparable](t *timeline.Timeline[K], key K, from, to time.Time, n float64) {
	t.Add(key, from, to, n)
	t.AddTotal(from, to, n)
}

func Example() {
	t := timeline.New[string](60, 10)
	for second := range 3 {
		from, to := at(float64(second)), at(float64(second+1))
		t.Add("operator", from, to, 20)
		t.Add("kubectl", from, to, 1)
		t.AddTotal(from, to, 21)
	}
	rates := t.Rates(1)
	fmt.Println(rates.Lines[0].Key, rates.Lines[0].PerSecond[:3], rates.Rest[:3], rates.Step)
	// Output: operator [20 20 20] [1 1 1] 1s
}

func TestSpread(t *testing.T) {
	l := timeline.New[string](60, 10)
	both(l, "a", at(0.5), at(2.5), 4)
	r := l.Rates(8)
	if got := fmt.Sprint(r.Lines[0].PerSecond); got != "[1 2 2]" {
		t.Errorf("%s", got)
	}
	if r.Others {
		t.Error("there are others")
	}
}

// However long it lasts, nothing is lost and the steps stay as many.
func TestLongRuns(t *testing.T) {
	const seconds = 100_000
	l := timeline.New[string](100, 10)
	for i := range seconds {
		both(l, "a", at(float64(i)), at(float64(i+1)), 3)
		both(l, "b", at(float64(i)), at(float64(i)), 1)
	}
	r := l.Rates(8)
	if len(r.Rest) > 100 || r.Step != 1024*time.Second || r.From != start {
		t.Errorf("%d steps of %s from %s", len(r.Rest), r.Step, r.From)
	}
	for i, v := range r.Lines[0].PerSecond[:len(r.Rest)-1] {
		if math.Abs(v-3) > 1e-6 || math.Abs(r.Lines[1].PerSecond[i]-1) > 1e-6 {
			t.Fatalf("step %d has %v and %v", i, v, r.Lines[1].PerSecond[i])
		}
	}
}

func TestManyKeys(t *testing.T) {
	l := timeline.New[int](10, 4)
	for i := range 1000 {
		both(l, -1, at(1), at(1), 1)
		both(l, i, at(1), at(1), 1)
	}
	r := l.Rates(1)
	if len(r.Lines) != 1 || r.Lines[0].Key != -1 || !r.Others {
		t.Fatalf("%+v", r)
	}
	if all := r.Lines[0].PerSecond[0] + r.Rest[0]; math.Abs(all-4000) > 1e-6 { // of half a second, the shortest that is divided by
		t.Errorf("%v in all", all)
	}
}

// Logs of several API servers, or of one under load, are not quite in order.
func TestDisorder(t *testing.T) {
	l := timeline.New[string](10, 4)
	both(l, "a", at(5), at(5), 1)
	both(l, "a", at(3), at(3), 1)
	both(l, "a", at(4), at(9), 5)
	r := l.Rates(1)
	total := 0.0
	for _, v := range r.Lines[0].PerSecond[:4] {
		total += v
	}
	if r.From != at(5) || r.To != at(9) || math.Abs(total-7) > 1e-6 {
		t.Errorf("%+v", r)
	}
}

func TestNothing(t *testing.T) {
	if r := timeline.New[string](10, 4).Rates(8); len(r.Lines) > 0 || r.Others || r.Rest != nil {
		t.Errorf("%+v", r)
	}
}
