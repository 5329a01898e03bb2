package storm_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hduolab/quell/controller/storm"
)

// The bounds of the docstring hold for streams of any skew, with and without decay.
func TestSketchKeepsItsBound(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 7))
		capacity, half := 1+r.IntN(40), time.Duration(r.IntN(2))*time.Second
		sketch := storm.NewSketch[uint64, struct{}](capacity, half, nil)
		zipf := rand.NewZipf(r, 1.05+r.Float64(), 1, 500)
		type occurrence struct {
			key  uint64
			when time.Time
		}
		var all []occurrence
		now := start
		for range 3000 {
			now = now.Add(time.Duration(r.IntN(300)) * time.Millisecond)
			o := occurrence{zipf.Uint64(), now}
			all = append(all, o)
			sketch.Add(o.key, o.when)
		}
		truth, total := map[uint64]float64{}, 0.0
		for _, o := range all {
			weight := 1.0
			if half > 0 {
				weight = math.Exp2(-now.Sub(o.when).Seconds() / half.Seconds())
			}
			truth[o.key] += weight
			total += weight
		}
		checkBound(t, sketch, truth, total, capacity)
		if t.Failed() {
			t.Fatalf("with seed %d, %d counters, half-life %s", seed, capacity, half)
		}
	}
}

func checkBound(t *testing.T, sketch *storm.Sketch[uint64, struct{}], truth map[uint64]float64, total float64, capacity int) {
	const rounding = 1e-6
	if math.Abs(sketch.Total()-total) > rounding*total {
		t.Errorf("total %v, want %v", sketch.Total(), total)
	}
	if sketch.Len() > capacity {
		t.Errorf("%d counters", sketch.Len())
	}
	kept := map[uint64]bool{}
	for _, c := range sketch.Top(-1) {
		kept[c.Key] = true
		if c.Weight < truth[c.Key]-rounding || c.Weight-c.Error > truth[c.Key]+rounding {
			t.Errorf("%d has %v, error %v, want %v", c.Key, c.Weight, c.Error, truth[c.Key])
		}
		if c.Error > sketch.Bound()+rounding {
			t.Errorf("error %v over the bound %v", c.Error, sketch.Bound())
		}
	}
	for key, weight := range truth {
		if weight > total/float64(capacity)+rounding && !kept[key] {
			t.Errorf("%d has no counter with %v of %v", key, weight, total)
		}
	}
}

func TestSketchForgets(t *testing.T) {
	var gone []string
	sketch := storm.NewSketch(1, 0, func(key string, n *int) { gone = append(gone, key); *n++ })
	*sketch.Add("a", start) = 5
	if n := *sketch.Add("b", start); n != 0 || len(gone) != 1 || gone[0] != "a" || sketch.Data("a") != nil {
		t.Errorf("data %d, evicted %v", n, gone)
	}
}

func TestSketchOverALongTime(t *testing.T) {
	sketch := storm.NewSketch[string, struct{}](2, time.Second, nil)
	for i := range 5000 {
		sketch.Add("a", start.Add(time.Duration(i)*time.Hour))
	}
	if w := sketch.Top(1)[0].Weight; w < 1 || w > 1.001 {
		t.Errorf("weight %v, want 1", w)
	}
}

func TestMeter(t *testing.T) {
	for _, perSecond := range []int{1, 10, 400} {
		m := storm.Meter{Half: 10 * time.Second}
		now := start
		for range perSecond * 30 {
			now = now.Add(time.Second / time.Duration(perSecond))
			m.Add(now)
		}
		if rate := m.Rate(now); math.Abs(rate/float64(perSecond)-1) > 0.07 {
			t.Errorf("%v/s, want %d/s", rate, perSecond)
		}
		if rate := m.Rate(now.Add(10 * time.Second)); math.Abs(rate/float64(perSecond)-0.5) > 0.1 {
			t.Errorf("%v/s one half-life later, want half of %d/s", rate, perSecond)
		}
	}
}
