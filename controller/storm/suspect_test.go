package storm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hduolab/quell/controller/storm"
)

// stamps writes times, of which the detector sees the values or only the metadata.
func stamps(s *stream, n int, pause time.Duration, metadata bool) {
	s.metadata = metadata
	s.writes(n, pause, func(int) { s.apply("op", status(condition("True", "ok", s.now))) })
}

// What a look at the values has shown stays the verdict, however many versions follow of which only metadata are seen.
func TestALookIsNotForgotten(t *testing.T) {
	s := newStream(t, storm.New(storm.Options{}), "web")
	s.apply("base", base)
	stamps(s, 20, time.Second, true)
	stamps(s, 11, time.Second, false)
	stamps(s, 500, time.Second, true)
	f := find(t, s.detector.Report(s.now), "web")
	if f.Verdict != storm.TimestampChurn || !f.IsStorm || f.Valued < 10 || f.Samples != f.Valued {
		t.Errorf("%s of %d samples, %d with values, storm: %v", f.Verdict, f.Samples, f.Valued, f.IsStorm)
	}
	if f.Writes != 532 {
		t.Errorf("%d writes, want 532", f.Writes)
	}
}

// That content does not stick shows in whole versions only, and is told for as long as the look stands.
func TestWhatDoesNotStickIsNotForgotten(t *testing.T) {
	d := storm.New(storm.Options{})
	f := find(t, d.Report(hand(d, 60, time.Second, func(i int, c *storm.Change) {
		if c.Object = nil; i < 12 {
			c.Object = map[string]any{"status": map[string]any{"x": "1"}}
		}
	})), "web")
	if f.Verdict != storm.DoesNotStick || !strings.Contains(f.Evidence[0], ".status.gone") {
		t.Errorf("%s: %q", f.Verdict, f.Evidence)
	}
}

// The next look tells what is the matter now.
func TestTheNextLookReplacesTheOneBefore(t *testing.T) {
	s := newStream(t, storm.New(storm.Options{}), "web")
	s.apply("base", base)
	stamps(s, 1, time.Second, true)
	stamps(s, 41, time.Second, false)
	stamps(s, 5, time.Second, true)
	s.metadata = false
	s.writes(12, time.Second, func(i int) { s.update("op", fmt.Sprintf(`"status": {"observedGeneration": %d}`, i+1)) })
	f := find(t, s.detector.Report(s.now), "web")
	if f.Verdict != storm.CounterChurn || f.Valued > 20 {
		t.Errorf("%s of %d samples, fields %+v", f.Verdict, f.Samples, f.Fields)
	}
}

// A version that was seen by its metadata can be seen once more in full: it counts once, and the next one has something to be
// compared with.
func TestAVersionIsCompletedByItsValues(t *testing.T) {
	d := storm.New(storm.Options{})
	f := find(t, d.Report(hand(d, 14, time.Second, func(i int, c *storm.Change) {
		object := map[string]any{"status": map[string]any{"x": start.Add(time.Duration(i) * time.Second).Format(time.RFC3339)}}
		if c.Object = object; i >= 8 {
			return
		}
		if c.Object = nil; i == 7 {
			d.Observe(*c)
			c.Object = object
		}
	})), "web")
	if f.Writes != 14 || f.Valued != 6 || f.Verdict != storm.TimestampChurn {
		t.Errorf("%s, %d writes, %d of %d with values", f.Verdict, f.Writes, f.Valued, f.Samples)
	}
}

// After an interruption nothing is said of the difference between the versions before and after it, and the report tells.
func TestAnInterruption(t *testing.T) {
	for namespace, isHit := range map[string]bool{"": true, "n": true, "other": false} {
		d := storm.New(storm.Options{})
		f := find(t, d.Report(hand(d, 22, time.Second, func(i int, c *storm.Change) {
			if i == 11 {
				d.Interrupt(deployments, namespace)
			}
			if i >= 11 {
				c.UID, c.Object = "2", map[string]any{"status": map[string]any{"y": "another"}}
			}
		})), "web")
		isTold := slices.ContainsFunc(f.Evidence, func(e string) bool { return strings.Contains(e, "interrupted") })
		if isTold != isHit {
			t.Errorf("interrupted in %q: evidence %q", namespace, f.Evidence)
		}
		if samples := map[bool]int{true: 19, false: 20}[isHit]; f.Samples != samples || f.Writes != 22 {
			t.Errorf("interrupted in %q: %d samples, %d writes", namespace, f.Samples, f.Writes)
		}
	}
}

// A stamp of whole seconds is written once per second at most; a few of them are enough.
func TestOnePerSecondIsNamedSoon(t *testing.T) {
	s := newStream(t, storm.New(storm.Options{}), "web")
	stamps(s, 7, 1040*time.Millisecond, false)
	f := find(t, s.detector.Report(s.now), "web")
	if f.Verdict != storm.TimestampChurn || !f.IsStorm || s.now.Sub(start) > 8*time.Second {
		t.Errorf("%s at %.2f/s after %s, storm: %v", f.Verdict, f.Rate, s.now.Sub(start), f.IsStorm)
	}
}

// What only rises can be progress, as can what gets longer: a few versions of that are too little.
func TestProgressIsNotNamedSoon(t *testing.T) {
	for _, name := range []string{"counter", "growth", "volatile text", "flapping"} {
		s := newStream(t, storm.New(storm.Options{}), "web")
		s.apply("base", base)
		s.writes(8, 700*time.Millisecond, func(i int) { storms[name].write(s, i) })
		if f := find(t, s.detector.Report(s.now), "web"); f.Verdict != storm.TooLittleEvidence || f.IsStorm {
			t.Errorf("%s: %s, storm: %v", name, f.Verdict, f.IsStorm)
		}
	}
}

// Real changes at a pace, of which only metadata are seen, are no storm for minutes.
func TestRealChangesBehindMetadataAreNoStorm(t *testing.T) {
	s := newStream(t, storm.New(storm.Options{}), "web")
	s.metadata = true
	s.apply("base", base)
	s.writes(250, time.Second, func(i int) { s.update("op", fmt.Sprintf(`"status": {"readyReplicas": %d}`, 1+i*7%5)) })
	noStorm(t, s.detector.Report(s.now))
}

func TestSuspects(t *testing.T) {
	d := storm.New(storm.Options{})
	var now time.Time
	for name, pause := range map[string]time.Duration{"fast": 100 * time.Millisecond, "slow": time.Second, "quiet": 10 * time.Second} {
		now = hand(d, int(20*time.Second/pause)+1, pause, func(_ int, c *storm.Change) { c.Name, c.ManagedFields[0].Manager = name, name })
	}
	hand(d, 2, time.Second, func(_ int, c *storm.Change) { c.Name = "new" })
	hand(d, 20, time.Second, func(_ int, c *storm.Change) { c.GroupResource = storm.KnownTraffic[0] })
	var names []string
	for _, s := range d.Suspects(now.Add(-10 * time.Second)) {
		names = append(names, s.Object.Name)
		if s.Object.Name == "slow" && (s.Version != "21" || s.Before != "20") {
			t.Errorf("%+v", s)
		}
	}
	if !slices.Equal(names, []string{"fast", "slow"}) {
		t.Errorf("suspects %q", names)
	}
}

// Objects that are written slowly one by one are suspects if one writer has many of them.
func TestSuspectsOfABusyWriter(t *testing.T) {
	d := storm.New(storm.Options{})
	now := start
	for i := range 600 {
		now = now.Add(25 * time.Millisecond)
		hand(d, 1, 0, func(_ int, c *storm.Change) {
			c.Name, c.ResourceVersion, c.Time = fmt.Sprint(i%120), fmt.Sprint(i+1), now
		})
	}
	if n := len(d.Suspects(now)); n != 120 {
		t.Errorf("%d suspects, want 120", n)
	}
}

func TestRatesCountWrites(t *testing.T) {
	d := storm.New(storm.Options{})
	r := d.Report(hand(d, 33, time.Second, func(int, *storm.Change) {}))
	for what, writes := range map[string]int64{
		"managers": r.Managers[0].Writes, "resources": r.Resources[0].Writes, "operations": r.Operations[0].Writes,
	} {
		if writes != 33 {
			t.Errorf("%d writes of %s, want 33", writes, what)
		}
	}
}
