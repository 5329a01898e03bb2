package ssa

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// step is a run of calls, each after the time since the one before, and how many of them passed.
type step struct {
	calls int
	every time.Duration
	pass  int
}

func TestBrakeLetsThrough(t *testing.T) {
	pace := Pace{Free: 3, PerChild: 2, Window: time.Minute, Pause: 10 * time.Second, MaxPause: 5 * time.Minute}
	for _, test := range []struct {
		name     string
		children int
		steps    []step
	}{
		{"single writes for ever", 0, []step{{1000, time.Minute, 1000}}},
		{"the budget of a window at its rate for ever", 0, []step{{300, 20 * time.Second, 300}}},
		{"a burst, then nothing during the pause", 0, []step{{3, 0, 3}, {99, 100 * time.Millisecond, 0}}},
		{"one write after the first pause", 0, []step{{4, 0, 3}, {1, 10 * time.Second, 1}, {1, 0, 0}}},
		{"one write after each pause, which doubles to its limit", 0, []step{
			{4, 0, 3}, {1, 10 * time.Second, 1}, {1, 19 * time.Second, 0}, {1, time.Second, 1}, {1, 39 * time.Second, 0}, {1, time.Second, 1},
			{1, 80 * time.Second, 1}, {1, 160 * time.Second, 1}, {1, 299 * time.Second, 0}, {1, time.Second, 1}, {1, 300 * time.Second, 1},
		}},
		{"ten fights a second for an hour", 0, []step{{36000, 100 * time.Millisecond, 3 + 5 + 10}}},
		{"the whole budget again after a calm time", 0, []step{{10, 0, 3}, {4, time.Minute + 40*time.Second + time.Millisecond, 4}}},
		{"the whole budget again after a calm time at the longest pause", 0, []step{{36000, 100 * time.Millisecond, 18}, {1, 12 * time.Minute, 1}, {3, 0, 2}}},
		{"no more when the calm was too short", 0, []step{{10, 0, 3}, {1, time.Minute, 1}, {5, 0, 0}}},
		{"more for more children", 5, []step{{20, 0, 13}}},
		{"no more than the limit for very many children", 1 << 20, []step{{2000, 0, maxFree}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			var b brake
			now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
			for i, s := range test.steps {
				passed := 0
				for range s.calls {
					now = now.Add(s.every)
					wait := b.pass(pace, test.children, now)
					g.Expect(wait).To(And(BeNumerically(">=", 0), BeNumerically("<=", pace.MaxPause)))
					if wait == 0 {
						passed++
					}
				}
				g.Expect(passed).To(Equal(s.pass), "step %d", i)
			}
		})
	}
}

func TestBrakeTellsWhenToComeBack(t *testing.T) {
	g := NewWithT(t)
	pace := Pace{Free: 1, Window: time.Minute, Pause: 10 * time.Second, MaxPause: time.Minute}
	var b brake
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	g.Expect(b.pass(pace, 0, now)).To(BeZero())
	g.Expect(b.pass(pace, 0, now)).To(Equal(10 * time.Second))
	g.Expect(b.pass(pace, 0, now.Add(9*time.Second))).To(Equal(time.Second))
	g.Expect(b.wait(now.Add(10 * time.Second))).To(BeZero())
	g.Expect(b.pass(pace, 0, now.Add(10*time.Second))).To(BeZero())
	g.Expect(b.pass(pace, 0, now.Add(10*time.Second))).To(Equal(20 * time.Second))
}

func TestBrakeFollowsTheNumberOfChildren(t *testing.T) {
	g := NewWithT(t)
	pace := Pace{Free: 1, PerChild: 1, Window: time.Minute, Pause: time.Second, MaxPause: time.Second}
	var b brake
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	g.Expect(b.pass(pace, 0, now)).To(BeZero())
	now = now.Add(time.Minute) // ten more children, and the time for their writes
	for range 2 {
		g.Expect(b.pass(pace, 10, now)).To(BeZero())
		now = now.Add(6 * time.Second)
	}
}

func TestPauseDoublesToItsLimit(t *testing.T) {
	p := Pace{Pause: 10 * time.Second, MaxPause: 45 * time.Second}
	for level, want := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 45 * time.Second, 45 * time.Second} {
		NewWithT(t).Expect(p.pause(level)).To(Equal(want), "level %d", level)
	}
	NewWithT(t).Expect(DefaultChurnPace.pause(1<<40)).To(Equal(DefaultChurnPace.MaxPause), "no overflow")
}

func TestZeroFieldsOfAPaceAreTheDefault(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Pace{}.orDefault(DefaultChurnPace)).To(Equal(DefaultChurnPace))
	own := DefaultChurnPace
	own.Free = 1
	g.Expect(Pace{Free: 1}.orDefault(DefaultChurnPace)).To(Equal(own))
	for _, bad := range []Pace{{Free: -1}, {Window: -1}, {Pause: -1}, {MaxPause: time.Second}} {
		_, err := bad.orDefault(DefaultChurnPace)
		g.Expect(err).To(HaveOccurred(), "%+v", bad)
	}
}

func TestBrakeFollowsAClockThatIsSetBack(t *testing.T) {
	g := NewWithT(t)
	pace := Pace{Free: 1, Window: time.Minute, Pause: 10 * time.Second, MaxPause: 5 * time.Minute}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var b brake
	g.Expect(b.pass(pace, 0, now)).To(BeZero())
	g.Expect(b.pass(pace, 0, now)).To(Equal(10 * time.Second))
	now = now.Add(-time.Hour)
	g.Expect(b.wait(now)).To(Equal(10 * time.Second))
	g.Expect(b.calm(pace, now)).To(Equal(time.Minute + 40*time.Second))
	g.Expect(b.pass(pace, 0, now.Add(9*time.Second))).To(Equal(time.Second))
	g.Expect(b.pass(pace, 0, now.Add(10*time.Second))).To(BeZero())
	g.Expect(b.pass(pace, 0, now.Add(29*time.Second))).To(Equal(time.Second))
	g.Expect(b.pass(pace, 0, now.Add(30*time.Second))).To(BeZero())

	r := record{at: now}
	g.Expect(r.age(now.Add(-time.Hour))).To(BeZero())
	g.Expect(r.age(now.Add(-time.Hour + time.Second))).To(Equal(time.Second))
}
