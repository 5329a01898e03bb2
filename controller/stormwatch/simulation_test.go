package stormwatch

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/hduolab/quell/controller/storm"
	"github.com/hduolab/quell/controller/storm/live"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// simulation is the loop of one StormWatch without a cluster: time passes, findings come, and writes are counted.
type simulation struct {
	t       *testing.T
	watch   *quellv1alpha1.StormWatch
	terms   terms
	memory  memory
	watches []live.Watch
	start   time.Time
	now     time.Time
	writes  []time.Time
	// log says what each write was for.
	log []urgency
}

func simulate(t *testing.T) *simulation {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	watch := &quellv1alpha1.StormWatch{ObjectMeta: metav1.ObjectMeta{Name: "all", UID: "1", Generation: 1}}
	watch.Status.ObservedGeneration = ptr.To(int64(-1))
	s := &simulation{
		t: t, watch: watch, terms: terms{threshold: 1, named: defaultStorms}, start: start, now: start, memory: recall(watch, start),
		watches: []live.Watch{watchOf("widgets", live.Watching)},
	}
	s.look()
	if len(s.writes) != 1 || s.log[0] != answer {
		t.Fatalf("the first look must answer, wrote %v", s.log)
	}
	return s
}

func watchOf(resource string, state live.State) live.Watch {
	gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: resource}
	return live.Watch{Resource: live.Resource{GroupVersionResource: gvr, Kind: "Widget", IsNamespaced: true}, State: state}
}

func (s *simulation) look(found ...storm.Finding) {
	s.now = s.now.Add(lookEach)
	next, status, u := decide(s.memory, observed{
		watch: s.watch, terms: s.terms, findings: found, watches: s.watches, isDiscovered: true, now: s.now,
	})
	s.memory = next
	if status == nil || u == nothing || next.history.wait(u, s.now) > 0 {
		return
	}
	s.watch.Status = *status
	s.memory.history = s.memory.history.wrote(u, s.now)
	s.writes, s.log = append(s.writes, s.now), append(s.log, u)
}

// run looks for a time at what find gives.
func (s *simulation) run(d time.Duration, find func() []storm.Finding) {
	for end := s.now.Add(d); s.now.Before(end); {
		s.look(find()...)
	}
}

// restart forgets all but the object.
func (s *simulation) restart() { s.memory = recall(s.watch, s.now) }

func (s *simulation) storm(name string, rate float64) storm.Finding {
	return storm.Finding{
		Object:  storm.Key{GroupResource: schema.GroupResource{Group: "example.com", Resource: "widgets"}, Namespace: "default", Name: name},
		Verdict: storm.TimestampChurn, IsStorm: rate >= 1, Rate: rate, Last: s.now,
		Writers: []storm.Writer{{Owner: fieldowners.Owner{Manager: "naive"}}}, Fields: []storm.Field{{Path: ".status.at"}},
	}
}

func (s *simulation) expectWrites(n int) {
	s.t.Helper()
	if len(s.writes) != n {
		s.t.Errorf("%d writes in %s, for %v, want %d", len(s.writes), s.now.Sub(s.start), s.log, n)
	}
}

// expectSlow wants fewer than one write a minute in any ten of them.
func (s *simulation) expectSlow() {
	s.t.Helper()
	for i, from := range s.writes {
		n := 0
		for _, at := range s.writes[i:] {
			if at.Sub(from) < 10*time.Minute {
				n++
			}
		}
		if n >= 10 {
			s.t.Fatalf("%d writes in the ten minutes from %s", n, from.Sub(s.start))
		}
	}
}

func (s *simulation) named() []string {
	var names []string
	for _, storm := range s.watch.Status.Storms {
		names = append(names, storm.Name)
	}
	return names
}

func noise(r *rand.Rand, rate, spread float64) float64 {
	return rate * math.Exp(spread*r.NormFloat64())
}

func TestASteadyStormIsWrittenOnce(t *testing.T) {
	s, r := simulate(t), rand.New(rand.NewPCG(1, 1))
	s.run(time.Minute, func() []storm.Finding { return nil })
	begin := s.now
	s.run(3*time.Hour, func() []storm.Finding {
		a, b := s.storm("a", noise(r, 100, 0.1)), s.storm("b", noise(r, 100, 0.1))
		r.Shuffle(2, func(_, _ int) { a, b = b, a })
		return []storm.Finding{a, b}
	})
	s.expectWrites(2)
	if s.log[1] != alarm || s.writes[1].Sub(begin) > lookEach {
		t.Errorf("the storm was told after %s as %v", s.writes[1].Sub(begin), s.log[1])
	}
	c := meta.FindStatusCondition(s.watch.Status.Conditions, quellv1alpha1.ConditionStormDetected)
	if c == nil || c.Status != metav1.ConditionTrue || c.Message != `TimestampChurn on widgets.example.com/default/`+s.named()[0]+` by "naive", field .status.at; status.storms has all` {
		t.Errorf("StormDetected is %v", c)
	}
}

func TestARateThatWandersIsWrittenEveryFiveMinutes(t *testing.T) {
	s := simulate(t)
	s.run(2*time.Hour, func() []storm.Finding {
		phase := s.now.Sub(s.start).Seconds() / 400 * 2 * math.Pi
		return []storm.Finding{s.storm("a", 100*math.Pow(10, math.Sin(phase)))}
	})
	for i := 2; i < len(s.writes); i++ {
		if gap := s.writes[i].Sub(s.writes[i-1]); gap < detailPause || s.log[i] != detail {
			t.Fatalf("write %d, a %v, came %s after the one before", i, s.log[i], gap)
		}
	}
	if len(s.writes) < 5 {
		t.Errorf("only %d writes: rates were not followed", len(s.writes))
	}
}

func TestWordsDoNotWobble(t *testing.T) {
	s, r := simulate(t), rand.New(rand.NewPCG(2, 2))
	verdicts := []storm.Verdict{storm.TimestampChurn, storm.VolatileText, storm.ValuesNotSeen, storm.TooLittleEvidence}
	s.run(2*time.Hour, func() []storm.Finding {
		f := s.storm("a", noise(r, 3, 0.5))
		f.Verdict = verdicts[r.IntN(len(verdicts))]
		f.IsStorm = r.IntN(2) == 0
		f.Writers = []storm.Writer{{Owner: fieldowners.Owner{Manager: fmt.Sprint("m", r.IntN(3))}}, {Owner: fieldowners.Owner{Manager: "naive"}}}
		f.Fields = []storm.Field{{Path: fmt.Sprint(".status.f", r.IntN(9))}, {Path: fmt.Sprint(".status.f", r.IntN(9))}}
		return []storm.Finding{f}
	})
	s.expectSlow()
	if len(s.writes) > 10 {
		t.Errorf("%d writes, for %v", len(s.writes), s.log)
	}
}

func TestAVerdictGivesWayOnceItHasChangedForLong(t *testing.T) {
	s := simulate(t)
	s.run(10*time.Minute, func() []storm.Finding { return []storm.Finding{s.storm("a", 10)} })
	other := func() []storm.Finding {
		f := s.storm("a", 10)
		f.Verdict, f.Writers = storm.Fight, []storm.Writer{{Owner: fieldowners.Owner{Manager: "other"}}}
		return []storm.Finding{f}
	}
	s.run(verdictHold-10*time.Second, other)
	s.expectWrites(2)
	s.run(time.Minute, other)
	s.expectWrites(3)
	if got := s.watch.Status.Storms[0]; got.Verdict != "Fight" || !slices.Equal(got.Managers, []string{"other"}) {
		t.Errorf("storm is %+v", got)
	}
}

func TestValuesThatComeLateReplaceTheVerdict(t *testing.T) {
	s := simulate(t)
	s.run(2*time.Minute, func() []storm.Finding {
		f := s.storm("a", 10)
		f.Verdict = storm.ValuesNotSeen
		return []storm.Finding{f}
	})
	s.run(10*time.Second, func() []storm.Finding { return []storm.Finding{s.storm("a", 10)} })
	if v := s.watch.Status.Storms[0].Verdict; v != "TimestampChurn" {
		t.Errorf("verdict is %s", v)
	}
	s.expectWrites(3)
	if s.log[2] != alarm {
		t.Errorf("what was not known before is told as %v", s.log[2])
	}
}

func TestTheManagerIsToldOnceItIsKnown(t *testing.T) {
	s, from := simulate(t), time.Time{}
	s.run(3*time.Hour, func() []storm.Finding {
		f := s.storm("a", 10)
		if s.now.Sub(s.start) < 20*time.Second {
			f.Writers, f.Fields, from = []storm.Writer{{}}, nil, s.now
		}
		return []storm.Finding{f}
	})
	s.expectWrites(3)
	if s.writes[2].Sub(from) > 2*lookEach {
		t.Errorf("the manager was told %s after it was known", s.writes[2].Sub(from))
	}
}

func TestAStormHasEndedAfterAQuietMinute(t *testing.T) {
	s := simulate(t)
	s.run(5*time.Minute, func() []storm.Finding { return []storm.Finding{s.storm("a", 100)} })
	last := s.now
	fading := func() []storm.Finding { // the rate fades, the last write stays where it is
		f := s.storm("a", 100*math.Exp2(-s.now.Sub(last).Seconds()/10))
		f.Last = last
		return []storm.Finding{f}
	}
	s.run(58*time.Second, fading)
	s.expectWrites(2)
	s.run(10*time.Second, fading)
	s.expectWrites(3)
	if len(s.watch.Status.Storms) != 0 || !meta.IsStatusConditionFalse(s.watch.Status.Conditions, quellv1alpha1.ConditionStormDetected) {
		t.Errorf("status still is %+v", s.watch.Status)
	}
	s.run(time.Hour, fading)
	s.expectWrites(3)
}

// The mistake is mended, and the object is written half as often for good reasons.
func TestAStormThatIsCuredHasEnded(t *testing.T) {
	s := simulate(t)
	s.run(5*time.Minute, func() []storm.Finding { return []storm.Finding{s.storm("a", 100)} })
	other := func(v storm.Verdict) func() []storm.Finding {
		return func() []storm.Finding {
			f := s.storm("a", 0.6)
			f.Verdict = v
			return []storm.Finding{f}
		}
	}
	for _, unsure := range []storm.Verdict{storm.TooLittleEvidence, storm.ValuesNotSeen, storm.TimestampChurn} {
		if s.run(2*time.Minute, other(unsure)); len(s.named()) != 1 {
			t.Fatalf("%s ended the storm", unsure)
		}
	}
	if s.run(2*time.Minute, other(storm.RealChanges)); len(s.named()) != 0 {
		t.Errorf("named are %v", s.watch.Status.Storms)
	}
}

// A storm that is hardly one goes on where it would not begin.
func TestAStormAtTheThreshold(t *testing.T) {
	s, r := simulate(t), rand.New(rand.NewPCG(3, 3))
	s.run(2*time.Hour, func() []storm.Finding { return []storm.Finding{s.storm("a", noise(r, 1, 0.2))} })
	s.expectWrites(2)
}

func TestStormsThatComeAndGoAreHeldBack(t *testing.T) {
	s, n := simulate(t), 0
	s.run(3*time.Hour, func() []storm.Finding {
		n++
		return []storm.Finding{s.storm(fmt.Sprint("a", n/10), 50)} // another one each 20 s
	})
	s.expectSlow()
	if len(s.writes) < 60 {
		t.Errorf("only %d writes in three hours: new storms were not told", len(s.writes))
	}
}

func TestManyStormsDoNotMoveTheList(t *testing.T) {
	s, r := simulate(t), rand.New(rand.NewPCG(4, 4))
	find := func() []storm.Finding {
		var found []storm.Finding
		for range 128 { // which of a thousand objects are hot is chance
			found = append(found, s.storm(fmt.Sprint("w", r.IntN(1000)), noise(r, 5, 0.2)))
		}
		return found
	}
	s.run(10*time.Minute, find)
	s.expectSlow()
	var names []string
	for _, o := range namedOf(s.memory.storms, s.terms) {
		names = append(names, o.object.Name)
	}
	writes := len(s.writes)
	if len(s.named()) != defaultStorms {
		t.Fatalf("named are %v", s.named())
	}
	keep := func() []storm.Finding {
		found := find()
		for _, name := range names {
			found = append(found, s.storm(name, noise(r, 5, 0.2)))
		}
		return found
	}
	s.run(time.Hour, keep)
	if !slices.Equal(s.named(), names) {
		t.Errorf("the list became %v from %v", s.named(), names)
	}
	if more := len(s.writes) - writes; more > 12 {
		t.Errorf("%d more writes in an hour, for %v", more, s.log[writes:])
	}
}

func TestAFarWorseStormIsNamedAtOnce(t *testing.T) {
	s := simulate(t)
	var usual []storm.Finding
	find := func() []storm.Finding {
		usual = nil
		for i := range defaultStorms {
			usual = append(usual, s.storm(fmt.Sprint("w", i), 10))
		}
		return usual
	}
	s.run(5*time.Minute, find)
	s.run(10*time.Second, func() []storm.Finding { return append(find(), s.storm("mild", 20)) })
	if slices.Contains(s.named(), "mild") {
		t.Errorf("a storm that is hardly worse drove one out: %v", s.named())
	}
	s.run(10*time.Second, func() []storm.Finding { return append(find(), s.storm("heavy", 200)) })
	if names := s.named(); names[0] != "heavy" || len(names) != defaultStorms {
		t.Errorf("named are %v", names)
	}
	if n := *s.watch.Status.StormCount; n < defaultStorms+1 {
		t.Errorf("stormCount is %d", n)
	}
}

func TestARestartWritesNothing(t *testing.T) {
	s := simulate(t)
	s.watches = append(s.watches, watchOf("gadgets", live.Forbidden))
	s.run(5*time.Minute, func() []storm.Finding { return []storm.Finding{s.storm("a", 100)} })
	n, status := len(s.writes), *s.watch.Status.DeepCopy()
	all := s.watches
	for range 3 {
		s.restart()
		s.watches = []live.Watch{watchOf("widgets", live.Starting), watchOf("gadgets", live.Starting)}
		s.run(10*time.Second, func() []storm.Finding { return nil })
		s.watches, s.writes = all, s.writes[:n:n]
		s.run(40*time.Second, func() []storm.Finding { // the detector has not seen enough yet
			f := s.storm("a", 100)
			f.Verdict, f.IsStorm = storm.TooLittleEvidence, false
			return []storm.Finding{f}
		})
		s.run(20*time.Minute, func() []storm.Finding { return []storm.Finding{s.storm("a", 110)} })
		s.expectWrites(n)
	}
	if !apiEqual(&s.watch.Status, &status) {
		t.Errorf("status became %+v from %+v", s.watch.Status, status)
	}
}

func apiEqual(a, b *quellv1alpha1.StormWatchStatus) bool { return urgencyOf(a, b) == nothing }

func TestWatchesThatStumbleAreNotTold(t *testing.T) {
	s, r := simulate(t), rand.New(rand.NewPCG(5, 5))
	s.run(2*time.Hour, func() []storm.Finding {
		s.watches[0].State = []live.State{live.Watching, live.Failing, live.Starting, live.NotFound}[r.IntN(4)]
		return nil
	})
	s.expectWrites(1)
	s.watches[0].State = live.Failing
	s.run(2*time.Minute, func() []storm.Finding { return nil })
	s.expectWrites(2)
	if c := meta.FindStatusCondition(s.watch.Status.Conditions, quellv1alpha1.ConditionReady); c.Reason != reasonFailing || c.Status != metav1.ConditionFalse {
		t.Errorf("Ready is %+v", c)
	}
}

func TestNothingIsToldBeforeWatchesHaveAnswered(t *testing.T) {
	s := simulate(t)
	s.watch.Generation = 2
	s.watches = append(s.watches, watchOf("gadgets", live.Starting))
	s.run(10*time.Second, func() []storm.Finding { return nil })
	s.expectWrites(1)
	s.watches[1].State = live.Forbidden
	s.look()
	s.expectWrites(2)
	status := s.watch.Status
	if *status.ObservedGeneration != 2 || *status.Watched != 1 || len(status.NotWatched) != 1 || status.NotWatched[0].Reason != reasonForbidden {
		t.Errorf("status is %+v", status)
	}
}

// The status of others in the place of ours is put right, at the pace of a change.
func TestAForeignStatusIsPutRightOnceAMinute(t *testing.T) {
	s := simulate(t)
	s.run(30*time.Minute, func() []storm.Finding {
		s.watch.Status.Watched = ptr.To(int32(99))
		return nil
	})
	s.expectSlow()
	if len(s.writes) < 20 {
		t.Errorf("only %d writes", len(s.writes))
	}
}
