package storm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hduolab/quell/controller/storm"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// pen writes to objects, of which each write has a version of its own.
type pen struct {
	detector *storm.Detector
	now      time.Time
	version  int
}

// write does n rounds, a pause apart, of a write to each object. The value is that of the round, or none is seen.
func (p *pen) write(n int, pause time.Duration, objects int, value func(i int) string) {
	for i := range n {
		for object := range objects {
			p.version++
			hand(p.detector, 1, 0, func(_ int, c *storm.Change) {
				c.Name, c.Time, c.ResourceVersion = fmt.Sprint("web-", object), p.now, fmt.Sprint(p.version)
				if c.Object = nil; value != nil {
					c.Object = map[string]any{"status": map[string]any{"x": value(i)}}
				}
			})
		}
		p.now = p.now.Add(pause)
	}
}

// moving leads somewhere.
func moving(i int) string { return strings.Repeat(string(rune('a'+i%26)), 1+i/26%3) }

func (p *pen) stamp(int) string { return p.now.Format(time.RFC3339Nano) }

func (p *pen) finding(t *testing.T) storm.Finding {
	t.Helper()
	return find(t, p.detector.Report(p.now), "web-0")
}

// Status while it is scaled, after a day in which it was written now and then.
func TestAnOldObjectThatIsScaledIsNoStorm(t *testing.T) {
	for objects, want := range map[int]storm.Verdict{1: storm.RealChanges, 12: storm.Rollout} {
		p := &pen{detector: storm.New(storm.Options{}), now: start}
		p.write(101, 15*time.Minute, objects, moving)
		p.write(20, 500*time.Millisecond, objects, moving)
		if f := p.finding(t); f.IsStorm || f.Verdict != want || f.Rate < storm.DefaultRate {
			t.Errorf("one of %d: %s at %.2f/s, storm: %v", objects, f.Verdict, f.Rate, f.IsStorm)
		}
		p.write(700, 500*time.Millisecond, objects, moving)
		if f := p.finding(t); !f.IsStorm || f.Verdict != storm.RealChanges {
			t.Errorf("one of %d, after minutes: %s at %.2f/s, storm: %v", objects, f.Verdict, f.Rate, f.IsStorm)
		}
	}
}

// MinDuration does not count from what was before a silence.
func TestABurstAfterASilenceIsShort(t *testing.T) {
	p := &pen{detector: storm.New(storm.Options{}), now: start}
	p.write(3, time.Hour, 1, p.stamp)
	p.write(30, 100*time.Millisecond, 1, p.stamp)
	if f := p.finding(t); f.IsStorm || f.Verdict != storm.TimestampChurn {
		t.Errorf("%s, storm: %v", f.Verdict, f.IsStorm)
	}
	p.write(30, 100*time.Millisecond, 1, p.stamp)
	if f := p.finding(t); !f.IsStorm {
		t.Errorf("%s, storm: %v", f.Verdict, f.IsStorm)
	}
}

// Each object is written far too seldom to have a burst of its own.
func TestASlowStormSpreadOverManyObjects(t *testing.T) {
	p := &pen{detector: storm.New(storm.Options{WriterRate: 4}), now: start}
	p.write(15, 20*time.Second, 100, p.stamp)
	p.now = p.now.Add(-20 * time.Second)
	if f := p.finding(t); !f.IsStorm || f.Verdict != storm.TimestampChurn || f.Rate > 0.1 {
		t.Errorf("%s at %.2f/s, storm: %v", f.Verdict, f.Rate, f.IsStorm)
	}
}

// A record whose values are not seen: many writes are a storm only if they come in one burst, whenever that was.
func TestBurstsOfARecord(t *testing.T) {
	p := &pen{detector: storm.New(storm.Options{Retrospective: true}), now: start}
	p.write(80, 15*time.Minute, 1, nil)
	p.write(21, 500*time.Millisecond, 1, nil)
	if f := p.finding(t); f.IsStorm || f.Verdict != storm.ValuesNotSeen || f.Peak < storm.DefaultRate {
		t.Errorf("%s at %.2f/s, storm: %v", f.Verdict, f.Peak, f.IsStorm)
	}
	p.write(80, 15*time.Minute, 1, nil)
	p.write(120, 500*time.Millisecond, 1, nil)
	p.write(20, 15*time.Minute, 1, nil)
	if f := p.finding(t); !f.IsStorm || f.Verdict != storm.ValuesNotSeen {
		t.Errorf("%s at %.2f/s, storm: %v", f.Verdict, f.Peak, f.IsStorm)
	}
}

// A storm of a record that is over before its window is full, and is followed by other writes.
func TestAShortStormOfARecordIsRemembered(t *testing.T) {
	p := &pen{detector: storm.New(storm.Options{Retrospective: true}), now: start}
	p.write(40, 500*time.Millisecond, 1, p.stamp)
	p.write(50, time.Hour, 1, moving)
	if f := p.finding(t); !f.IsStorm || f.Verdict != storm.TimestampChurn {
		t.Errorf("%s at %.2f/s, storm: %v", f.Verdict, f.Peak, f.IsStorm)
	}
}

// A verdict that holds for hardly more than half of the writes wakes nobody up at once, but what goes on for minutes does.
func TestAnUnsureVerdictIsAStormOnceItPersists(t *testing.T) {
	for writes, isStorm := range map[int]bool{100: false, 400: true} {
		d := storm.New(storm.Options{Window: 20})
		generation := int64(1)
		f := find(t, d.Report(hand(d, writes, time.Second, func(i int, c *storm.Change) {
			if i%5 < 3 {
				generation++
			}
			c.Generation = generation
		})), "web")
		if f.Verdict != storm.SpecChurn || f.Confidence >= 0.5 || f.IsStorm != isStorm {
			t.Errorf("after %d writes %s, confidence %.2f, storm: %v", writes, f.Verdict, f.Confidence, f.IsStorm)
		}
	}
}

// fights are two managers who write an object that others write too.
var fights = map[string]struct {
	write   func(s *stream, i int)
	isFight bool
}{
	"the controller of the kind reports each time": {func(s *stream, i int) {
		s.apply(fmt.Sprint("op", i%2), fmt.Sprintf(`"spec": {"replicas": %d}`, 1+i%2))
		for step := range 2 {
			s.update("deployment-controller", fmt.Sprintf(`"status": {"observedGeneration": %d, "replicas": %d}`, s.generation, 1+(i+step)%2))
		}
	}, true},
	"they take little of what they write": {func(s *stream, i int) {
		manager := fmt.Sprint("op", i%2)
		s.apply(manager, fmt.Sprintf(`"spec": {"replicas": %d}, "metadata": {"annotations": {"a-%s": "%d"}}`, 1+i/3%2, manager, i))
	}, false},
	"they take it a few times while others write": {func(s *stream, i int) {
		if i%12 == 0 {
			s.apply(fmt.Sprint("op", i/12%2), fmt.Sprintf(`"spec": {"replicas": %d}`, 1+i/12%2))
		}
		s.update("deployment-controller", status(condition("True", moving(i), start)))
	}, false},
}

func TestFightsAmongOtherWrites(t *testing.T) {
	for name, c := range fights {
		s := newStream(t, storm.New(storm.Options{}), "web")
		s.apply("base", base)
		s.writes(70, 700*time.Millisecond, func(i int) { c.write(s, i) })
		f := find(t, s.detector.Report(s.now), "web")
		isFight := f.Verdict == storm.Fight || slices.Contains(f.Also, storm.Fight)
		if isFight != c.isFight || isFight && !f.IsStorm {
			t.Errorf("%s: %s, also %v, storm: %v, evidence %q, writers %v", name, f.Verdict, f.Also, f.IsStorm, f.Evidence, f.Writers)
		}
		if !isFight {
			continue
		}
		first := []string{f.Writers[0].Manager, f.Writers[1].Manager}
		if slices.Sort(first); !slices.Equal(first, []string{"op0", "op1"}) || !strings.HasPrefix(f.Evidence[0], ".spec.replicas") {
			t.Errorf("%s: writers %v, evidence %q", name, f.Writers, f.Evidence)
		}
	}
}

// Many objects that one writer stamps are no rollout, however few of them were looked at.
func TestARolloutIsNotTheRestOfAStorm(t *testing.T) {
	d := storm.New(storm.Options{WriterRate: 5})
	now := start
	for i := range 400 {
		name := fmt.Sprint("w", i%20)
		now = now.Add(50 * time.Millisecond)
		when := metav1.NewTime(now.Truncate(time.Second))
		c := storm.Change{Key: storm.Key{GroupResource: deployments, Namespace: "n", Name: name}, Time: now, UID: types.UID(name), ResourceVersion: fmt.Sprint(i + 1), Generation: 1}
		fields := &metav1.FieldsV1{}
		fields.SetRawString(`{"f:status":{"f:at":{}}}`)
		c.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "op", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status", APIVersion: "e/v1", FieldsV1: fields, Time: &when}}
		if i%20 < 4 { // of the others only metadata are seen
			c.Object = map[string]any{"status": map[string]any{"at": now.Format(time.RFC3339Nano)}}
		}
		d.Observe(c)
	}
	storms, unseen := 0, 0
	for _, f := range d.Report(now).Findings {
		switch {
		case f.IsStorm && f.Verdict == storm.TimestampChurn:
			storms++
		case f.Verdict == storm.ValuesNotSeen && strings.Contains(f.Evidence[0], "storms other objects"):
			unseen++
		default:
			t.Errorf("%s: %s, storm: %v", f.Object, f.Verdict, f.IsStorm)
		}
	}
	if storms != 4 || unseen != 16 {
		t.Errorf("%d storms, and %d objects whose values were not seen", storms, unseen)
	}
}
