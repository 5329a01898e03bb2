package storm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/hduolab/quell/controller/storm"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const base = `"spec": {"replicas": 2}, "status": {"replicas": 2}`

func status(conditions ...string) string {
	return `"status": {"conditions": [` + strings.Join(conditions, ",") + `]}`
}

// storms are programs that write without need, each in a way of its own.
var storms = map[string]struct {
	write   func(s *stream, i int)
	verdict storm.Verdict
	// managers that are named, and the field that is named first.
	managers []string
	field    string
	// blind is the verdict where only metadata are seen.
	blind storm.Verdict
}{
	"timestamps": {
		func(s *stream, _ int) { s.apply("op", status(condition("True", "ok", s.now))) },
		storm.TimestampChurn, []string{"op"}, `.status.conditions[type="Ready"].lastUpdateTime`, storm.ValuesNotSeen,
	},
	"counter": {
		func(s *stream, i int) { s.update("op", fmt.Sprintf(`"status": {"observedGeneration": %d}`, i)) },
		storm.CounterChurn, []string{"op"}, ".status.observedGeneration", storm.ValuesNotSeen,
	},
	"fight of appliers": {
		func(s *stream, i int) { s.apply(fmt.Sprint("op", i%2), fmt.Sprintf(`"spec": {"replicas": %d}`, 1+i%2)) },
		storm.Fight, []string{"op0", "op1"}, ".spec.replicas", storm.Fight,
	},
	"fight of an applier and an updater": {
		func(s *stream, i int) {
			if i%2 == 0 {
				s.apply("op", `"spec": {"replicas": 3}`)
			} else {
				s.update("hpa", `"spec": {"replicas": 5}`)
			}
		},
		storm.Fight, []string{"op", "hpa"}, ".spec.replicas", storm.Fight,
	},
	"fight of updaters with new values each time": {
		func(s *stream, i int) {
			s.update(fmt.Sprint("op", i%2), fmt.Sprintf(`"metadata": {"annotations": {"seen": "%d"}}`, i))
		},
		storm.Fight, []string{"op0", "op1"}, ".metadata.annotations.seen", storm.Fight,
	},
	"order": {
		func(s *stream, i int) {
			lists := []string{`["a", "b", "c"]`, `["c", "a", "b"]`, `["b", "a", "c"]`}
			s.apply("op", `"spec": {"template": {"spec": {"containers": [{"name": "x", "args": `+lists[i%3]+`}]}}}`)
		},
		storm.OrderFlip, []string{"op"}, `.spec.template.spec.containers[name="x"].args`, storm.SpecChurn,
	},
	"order of a map list": {
		func(s *stream, i int) {
			items := []string{`{"name": "a"}`, `{"name": "b"}`}
			s.apply(fmt.Sprint("op", i%2), fmt.Sprintf(`"spec": {"template": {"spec": {"containers": [%s, %s]}}}`, items[i%2], items[1-i%2]))
		},
		storm.OrderFlip, []string{"op0", "op1"}, `.spec.template.spec.containers`, storm.SpecChurn,
	},
	"flapping": {
		func(s *stream, i int) { s.apply("op", status(condition([]string{"True", "False"}[i%2], "x", s.now))) },
		storm.Flapping, []string{"op"}, `.status.conditions[type="Ready"].lastUpdateTime`, storm.ValuesNotSeen,
	},
	"two partial configurations of one manager": {
		func(s *stream, i int) {
			s.apply("op", []string{`"status": {"replicas": 1}`, `"status": {"readyReplicas": 1}`}[i%2])
		},
		storm.Flapping, []string{"op"}, ".status.readyReplicas", storm.Flapping,
	},
	"volatile text": {
		func(s *stream, i int) {
			s.apply("op", status(condition("False", fmt.Sprintf("request 3f2a9c%02d-1111-4222-8333-123456789abc took %dms", i, 7*i+3), start)))
		},
		storm.VolatileText, []string{"op"}, `.status.conditions[type="Ready"].message`, storm.ValuesNotSeen,
	},
	"growth": {
		func(s *stream, i int) {
			var all []string
			for j := range i + 2 {
				all = append(all, fmt.Sprintf("{\"type\": \"T%03d\", \"status\": \"True\"}", j))
			}
			s.apply("op", status(all...))
		},
		storm.UnboundedGrowth, []string{"op"}, "", storm.UnboundedGrowth,
	},
	"growing text": {
		func(s *stream, i int) {
			s.apply("op", status(condition("True", strings.Repeat("failed; ", i+1), start)))
		},
		storm.UnboundedGrowth, []string{"op"}, `.status.conditions[type="Ready"].message`, storm.ValuesNotSeen,
	},
	"spec": {
		func(s *stream, _ int) {
			s.update("op", fmt.Sprintf(`"spec": {"template": {"metadata": {"annotations": {"at": %q}}}}`, s.now.Format(time.RFC3339Nano)))
		},
		storm.SpecChurn, []string{"op"}, ".spec.template.metadata.annotations.at", storm.SpecChurn,
	},
	"annotation": {
		func(s *stream, _ int) {
			s.update("op", fmt.Sprintf(`"metadata": {"annotations": {"op.example.com/last": %q}}`, s.now.Format(time.RFC3339Nano)))
		},
		storm.MetadataChurn, []string{"op"}, `.metadata.annotations["op.example.com/last"]`, storm.ValuesNotSeen,
	},
	"an unknown remover": {
		func(s *stream, i int) {
			if i%2 == 0 {
				s.apply("op", `"status": {"replicas": 1, "readyReplicas": 1}`)
			} else {
				s.update("remover", `"status": {"readyReplicas": null}`)
			}
		},
		storm.Fight, []string{"op", ""}, ".status.readyReplicas", storm.Fight,
	},
}

func find(t *testing.T, r storm.Report, name string) storm.Finding {
	t.Helper()
	i := slices.IndexFunc(r.Findings, func(f storm.Finding) bool { return f.Object.Name == name })
	if i < 0 {
		t.Fatalf("%s is not among the %d findings", name, len(r.Findings))
	}
	return r.Findings[i]
}

// pauses are the rates at which each storm is tried: many writes within one second of managedFields, and more than one apart.
var pauses = map[string]time.Duration{"fast": 5 * time.Millisecond, "slow": 700 * time.Millisecond}

func TestStormsAreNamed(t *testing.T) {
	for name, c := range storms {
		for speed, pause := range pauses {
			if speed == "fast" && slices.Contains([]string{"an unknown remover", "order of a map list"}, name) {
				continue // these are told below
			}
			t.Run(name+" "+speed, func(t *testing.T) {
				s := newStream(t, storm.New(storm.Options{MinDuration: time.Millisecond}), "web")
				s.apply("base", base)
				s.writes(40, pause, func(i int) { c.write(s, i) })
				f := find(t, s.detector.Report(s.now), "web")
				check(t, f, c.verdict, c.managers)
				if c.field != "" && f.Fields[0].Path != c.field {
					t.Errorf("names %s, want %s", f.Fields[0].Path, c.field)
				}
			})
		}
	}
}

func check(t *testing.T, f storm.Finding, verdict storm.Verdict, managers []string) {
	t.Helper()
	var named []string
	for _, w := range f.Writers {
		if !slices.Contains(named, w.Manager) && w.Writes*4 > f.Samples {
			named = append(named, w.Manager)
		}
	}
	slices.Sort(named)
	if f.Verdict != verdict || !slices.Equal(named, slices.Sorted(slices.Values(managers))) {
		t.Errorf("%s by %q, want %s by %q; also %v, evidence %q, fields %+v, writers %+v", f.Verdict, named, verdict, managers, f.Also, f.Evidence, f.Fields, f.Writers)
	}
	if needless := verdict != storm.ValuesNotSeen; f.IsStorm != needless {
		t.Errorf("storm: %v with %.1f/s, from %s to %s", f.IsStorm, f.Rate, f.First, f.Last)
	}
	if f.Remedy == "" || len(f.Evidence) == 0 || f.Samples < 10 || f.Confidence < 0.4 || f.Confidence > 1 {
		t.Errorf("remedy %q, evidence %q, %d samples, confidence %v", f.Remedy, f.Evidence, f.Samples, f.Confidence)
	}
}

func TestStormsSeenByMetadata(t *testing.T) {
	for name, c := range storms {
		t.Run(name, func(t *testing.T) {
			s := newStream(t, storm.New(storm.Options{MinDuration: time.Millisecond}), "web")
			s.metadata = true
			s.apply("base", base)
			s.writes(40, 700*time.Millisecond, func(i int) { c.write(s, i) })
			f := find(t, s.detector.Report(s.now), "web")
			check(t, f, c.blind, c.managers)
		})
	}
}

// Within one second of managedFields nobody can tell who removes a field, but that somebody does is seen.
func TestARemoverWithinOneSecond(t *testing.T) {
	s := newStream(t, storm.New(storm.Options{MinDuration: time.Millisecond}), "web")
	s.apply("base", base)
	s.writes(40, 5*time.Millisecond, func(i int) { storms["an unknown remover"].write(s, i) })
	f := find(t, s.detector.Report(s.now), "web")
	if !f.IsStorm || f.Fields[0].Path != ".status.readyReplicas" || (f.Verdict != storm.Fight && f.Verdict != storm.Flapping) {
		t.Errorf("%+v", f)
	}
}

// Nor can anybody tell which of two owners writes a new order, but both are named.
func TestCoOwnersWithinOneSecond(t *testing.T) {
	s := newStream(t, storm.New(storm.Options{MinDuration: time.Millisecond}), "web")
	s.apply("base", base)
	s.writes(40, 5*time.Millisecond, func(i int) { storms["order of a map list"].write(s, i) })
	f := find(t, s.detector.Report(s.now), "web")
	words := strings.Join(f.Evidence, "; ")
	if !f.IsStorm || f.Verdict != storm.OrderFlip || !strings.Contains(words, "op0") || !strings.Contains(words, "op1") {
		t.Errorf("%s: %s", f.Verdict, words)
	}
}

// hand builds versions that the merge code of a test cannot make.
func hand(d *storm.Detector, n int, pause time.Duration, each func(i int, c *storm.Change)) time.Time {
	now := start
	for i := range n {
		c := storm.Change{Key: storm.Key{GroupResource: deployments, Namespace: "n", Name: "web"}, Time: now, UID: "1", ResourceVersion: fmt.Sprint(i + 1), Generation: 1}
		fields := &metav1.FieldsV1{}
		fields.SetRawString(`{"f:status":{"f:x":{},"f:gone":{}}}`)
		when := metav1.NewTime(now.Truncate(time.Second))
		c.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "op", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "e/v1", FieldsV1: fields, Time: &when}}
		c.Object = map[string]any{"status": map[string]any{"x": "1", "gone": "1"}}
		each(i, &c)
		d.Observe(c)
		now = now.Add(pause)
	}
	return now
}

func TestVersionsWithoutADifference(t *testing.T) {
	for want, each := range map[storm.Verdict]func(int, *storm.Change){
		storm.ManagedFieldsOnly: func(int, *storm.Change) {},
		storm.DoesNotStick: func(_ int, c *storm.Change) {
			c.Object = map[string]any{"status": map[string]any{"x": "1"}}
		},
		storm.APIVersionFlip: func(i int, c *storm.Change) { c.ManagedFields[0].APIVersion = fmt.Sprint("e/v", 1+i%2) },
		storm.DeleteRecreate: func(i int, c *storm.Change) { c.UID = types.UID(fmt.Sprint(i)) },
	} {
		d := storm.New(storm.Options{})
		f := find(t, d.Report(hand(d, 30, 200*time.Millisecond, each)), "web")
		check(t, f, want, []string{"op"})
		if want == storm.DoesNotStick && !strings.Contains(f.Evidence[0], ".status.gone") {
			t.Errorf("does not name what is missing: %q", f.Evidence)
		}
	}
}

// What does not stick was seen in the look at the values, and stays seen when only metadata follow.
func TestDoesNotStickOutlivesTheLook(t *testing.T) {
	d := storm.New(storm.Options{})
	f := find(t, d.Report(hand(d, 60, 200*time.Millisecond, func(i int, c *storm.Change) {
		if c.Object = map[string]any{"status": map[string]any{"x": "1"}}; i > 20 {
			c.Object = nil
		}
	})), "web")
	check(t, f, storm.DoesNotStick, []string{"op"})
	if !strings.Contains(f.Evidence[0], ".status.gone") {
		t.Errorf("does not name what is missing: %q", f.Evidence)
	}
}

// A status that goes back with the spec is no flapping, and one that does so by itself is.
func TestAStatusMayFollowItsSpec(t *testing.T) {
	for pace, want := range map[int]storm.Verdict{4: storm.RealChanges, 60: storm.Flapping} {
		d := storm.New(storm.Options{})
		f := find(t, d.Report(hand(d, 60, 200*time.Millisecond, func(i int, c *storm.Change) {
			c.Generation = int64(1 + i/pace)
			c.Object = map[string]any{"status": map[string]any{"x": []string{"two", "four", "six", "eight"}[i%4]}}
		})), "web")
		if f.Verdict != want || f.IsStorm != (want == storm.Flapping) {
			t.Errorf("%s, storm: %v, with a new generation every %d writes: %+v", f.Verdict, f.IsStorm, pace, f.Fields)
		}
	}
}

// A few writes of which some come back to earlier values, as while an autoscaler moves, are a verdict but nothing to wake up for.
func TestAVerdictOnFewWritesIsNoStorm(t *testing.T) {
	for writes, isStorm := range map[int]bool{18: false, 60: true} {
		d := storm.New(storm.Options{})
		f := find(t, d.Report(hand(d, writes, 500*time.Millisecond, func(i int, c *storm.Change) {
			c.Object = map[string]any{"status": map[string]any{"x": []string{"two", "four", "four"}[i%3], "gone": string(rune('a' + i/3))}}
		})), "web")
		if f.Verdict != storm.Flapping || f.IsStorm != isStorm {
			t.Errorf("after %d writes %s, storm: %v, confidence %.2f", writes, f.Verdict, f.IsStorm, f.Confidence)
		}
	}
}

func TestDeletionsBetweenCreations(t *testing.T) {
	d := storm.New(storm.Options{})
	now := hand(d, 40, 200*time.Millisecond, func(i int, c *storm.Change) {
		c.UID = types.UID(fmt.Sprint(i / 2))
		if i%2 == 1 {
			c.Type = storm.Deleted
		}
	})
	check(t, find(t, d.Report(now), "web"), storm.DeleteRecreate, []string{"op"})
}

func TestTooLittleEvidence(t *testing.T) {
	d := storm.New(storm.Options{})
	f := find(t, d.Report(hand(d, 6, time.Millisecond, func(int, *storm.Change) {})), "web")
	if f.Verdict != storm.TooLittleEvidence || f.IsStorm || f.Samples >= 10 {
		t.Errorf("%+v", f)
	}
}

func TestAResyncIsNoWrite(t *testing.T) {
	d := storm.New(storm.Options{})
	r := d.Report(hand(d, 50, time.Second, func(_ int, c *storm.Change) { c.ResourceVersion = "7" }))
	if r.Writes != 1 || len(r.Findings) != 0 {
		t.Errorf("%d writes, %d findings", r.Writes, len(r.Findings))
	}
}

func TestAGapIsTold(t *testing.T) {
	d := storm.New(storm.Options{})
	f := find(t, d.Report(hand(d, 40, 200*time.Millisecond, func(i int, c *storm.Change) {
		if i == 21 {
			c.ResourceVersion = "21" // the watch begins with what the list gave
		}
		if i == 20 {
			c.Type = storm.Listed
			c.Object = map[string]any{"status": map[string]any{"x": "another"}}
		}
	})), "web")
	if !strings.Contains(strings.Join(f.Evidence, "\n"), "interrupted") {
		t.Errorf("evidence %q", f.Evidence)
	}
	if f.Writes != 38 {
		t.Errorf("a listed version is no write: %d", f.Writes)
	}
}

func TestKnownTrafficIsNoStorm(t *testing.T) {
	for _, r := range storm.KnownTraffic {
		d := storm.New(storm.Options{})
		f := find(t, d.Report(hand(d, 40, 100*time.Millisecond, func(_ int, c *storm.Change) { c.GroupResource = r })), "web")
		if f.Verdict != storm.Heartbeat || f.IsStorm {
			t.Errorf("%s is %s, storm: %v", r, f.Verdict, f.IsStorm)
		}
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	d := storm.New(storm.Options{})
	now := hand(d, 40, 200*time.Millisecond, func(i int, c *storm.Change) {
		c.GroupResource = schema.GroupResource{Resource: "secrets"}
		c.Object = map[string]any{"data": map[string]any{"password": fmt.Sprint("hunter", i%2)}}
	})
	r := d.Report(now)
	if f := find(t, r, "web"); f.Verdict != storm.Flapping || strings.Contains(fmt.Sprintf("%+v", r), "hunter") {
		t.Errorf("%+v", f)
	}
}

// A rollout of many Deployments: each gets a few writes in a row, with values that lead somewhere.
func TestARolloutIsNoStorm(t *testing.T) {
	for _, metadata := range []bool{false, true} {
		d := storm.New(storm.Options{})
		var all []*stream
		for i := range 200 {
			s := newStream(t, d, fmt.Sprint("web-", i))
			s.metadata = metadata
			s.apply("kubectl", `"spec": {"replicas": 10, "template": {"spec": {"containers": [{"name": "x", "image": "one"}]}}}`)
			all = append(all, s)
		}
		for ready := range 11 {
			for i, s := range all {
				s.now = start.Add(time.Duration(ready)*700*time.Millisecond + time.Duration(i)*3*time.Millisecond)
				s.update("kube-controller-manager", fmt.Sprintf(`"status": {"replicas": 10, "updatedReplicas": %d, "readyReplicas": %d,
					"unavailableReplicas": %d, "conditions": [%s]}`, min(10, ready+2), ready, 10-ready,
					condition([]string{"False", "True"}[ready/10], fmt.Sprintf("ReplicaSet has %d of 10", ready), s.now)))
			}
		}
		noStorm(t, d.Report(all[0].now))
	}
}

func noStorm(t *testing.T, r storm.Report) {
	t.Helper()
	if len(r.Findings) == 0 {
		t.Error("nothing was looked at")
	}
	for _, f := range r.Findings {
		if f.IsStorm {
			t.Fatalf("%s: %s at %.2f/s, %q", f.Object, f.Verdict, f.Rate, f.Evidence)
		}
	}
}

// Each object gets its spec, finalizer and three reports of status within a second each.
func TestCreatingManyObjectsIsNoStorm(t *testing.T) {
	d := storm.New(storm.Options{})
	now := start
	for i := range 500 {
		s := newStream(t, d, fmt.Sprint("app-", i))
		now = now.Add(20 * time.Millisecond)
		s.now = now
		s.apply("kubectl", base)
		s.writes(1, 100*time.Millisecond, func(int) { s.update("op", `"metadata": {"finalizers": ["example.com/x"]}`) })
		s.writes(5, 200*time.Millisecond, func(i int) {
			s.apply("op", status(condition([]string{"Unknown", "False", "True"}[i/2], fmt.Sprint("step ", i), s.now)))
		})
	}
	noStorm(t, d.Report(now))
}

// What a cluster in good order writes for hours: a heartbeat in a status each 10 s, and a person's or pipeline's real changes.
func TestSlowWritersAreNoStorm(t *testing.T) {
	d := storm.New(storm.Options{})
	node, loop := newStream(t, d, "node"), newStream(t, d, "loop")
	node.apply("base", base)
	loop.apply("base", base)
	node.writes(360, 10*time.Second, func(int) { node.update("kubelet", status(condition("True", "ok", node.now))) })
	loop.writes(360, 10*time.Second, func(i int) { loop.apply("kubectl", fmt.Sprintf(`"spec": {"replicas": %d}`, i%3)) })
	noStorm(t, d.Report(loop.now))
}

func TestAnAutoscalerIsNoStorm(t *testing.T) {
	s := newStream(t, storm.New(storm.Options{}), "web")
	s.apply("kubectl", base)
	s.writes(40, 15*time.Second, func(i int) {
		s.update("kube-controller-manager", fmt.Sprintf(`"spec": {"replicas": %d}`, []int{2, 3, 5, 4, 2, 6}[i%6]))
	})
	if f := find(t, s.detector.Report(s.now), "web"); f.IsStorm {
		t.Errorf("%s at %.2f/s", f.Verdict, f.Rate)
	}
}

// Many objects, each written slower than Options.Rate, by one writer whose writes are too many in all.
func TestAStormSpreadOverManyObjects(t *testing.T) {
	d := storm.New(storm.Options{})
	var all []*stream
	for i := range 100 {
		s := newStream(t, d, fmt.Sprint("w-", i))
		s.apply("base", base)
		all = append(all, s)
	}
	now := start
	for range 15 {
		now = now.Add(2 * time.Second)
		for i, s := range all {
			s.now = now.Add(time.Duration(i) * 20 * time.Millisecond)
			s.apply("op", status(condition("True", "ok", s.now)))
		}
	}
	f := d.Report(now.Add(2 * time.Second)).Findings[0]
	if !f.IsStorm || f.Verdict != storm.TimestampChurn || f.Rate > 1 {
		t.Errorf("%+v", f)
	}
}

func TestRankings(t *testing.T) {
	s := newStream(t, storm.New(storm.Options{}), "web")
	s.apply("base", base)
	s.writes(100, 100*time.Millisecond, func(int) { s.apply("op", status(condition("True", "ok", s.now))) })
	r := s.detector.Report(s.now)
	want := fieldowners.Owner{Manager: "op", Operation: metav1.ManagedFieldsOperationApply}
	if m := r.Managers[0]; m.Key != want || m.PerSecond < 9 || m.PerSecond > 11 || m.Error != 0 {
		t.Errorf("first manager %+v", m)
	}
	if first := r.Resources[0]; first.Key != deployments || first.PerSecond < 9 || first.PerSecond > 11 {
		t.Errorf("first resource %+v", first)
	}
	if o := r.Operations[0]; o.Key != (fieldowners.Owner{Operation: metav1.ManagedFieldsOperationApply}) {
		t.Errorf("first operation %+v", o)
	}
	if f := r.Findings[0]; f.Rate < 9 || f.Rate > 11 {
		t.Errorf("%.2f writes/s, want 10", f.Rate)
	}
}

// A storm that was over long before the end of a record.
func TestARecordRemembersItsWorstTime(t *testing.T) {
	d := storm.New(storm.Options{Retrospective: true, Hot: 2})
	s := newStream(t, d, "web")
	s.apply("base", base)
	s.writes(200, 50*time.Millisecond, func(int) { s.apply("op", status(condition("True", "ok", s.now))) })
	s.writes(70, time.Minute, func(i int) {
		s.update("user", fmt.Sprintf(`"spec": {"template": {"metadata": {"labels": {"v%d": "x"}}}}`, i%7))
	})
	f := find(t, d.Report(s.now), "web")
	if !f.IsStorm || f.Verdict != storm.TimestampChurn || f.Peak < 15 {
		t.Errorf("%+v", f)
	}
}

// A million objects pass by; what is kept does not grow, and the storm among them is found.
func TestMemoryIsBounded(t *testing.T) {
	const objects = 1_000_000
	o := storm.Options{Counters: 512, Hot: 16, Window: 32}
	d := storm.New(o)
	s := newStream(t, d, "web")
	s.apply("base", base)
	now := start
	for i := range objects {
		now = now.Add(100 * time.Microsecond)
		d.Observe(storm.Change{Key: storm.Key{GroupResource: deployments, Name: fmt.Sprint(i)}, Time: now, ResourceVersion: "1"})
		if i%500 == 0 {
			s.now = now
			s.apply("op", status(condition("True", "ok", now)))
		}
	}
	counters, hot, samples := d.Entries()
	if counters > o.Counters*4 || hot > o.Hot || samples > o.Hot*o.Window {
		t.Errorf("%d counters, %d hot objects, %d samples", counters, hot, samples)
	}
	r := d.Report(now)
	f := find(t, r, "web")
	if !f.IsStorm || f.Verdict != storm.TimestampChurn || f.Rate < 19 || f.Rate > 21 {
		t.Errorf("%s at %.1f/s, storm: %v", f.Verdict, f.Rate, f.IsStorm)
	}
	if r.Writes < objects || r.RateError > r.Rate/float64(o.Counters)*1.5 {
		t.Errorf("%d writes at %.0f/s, error %.2f", r.Writes, r.Rate, r.RateError)
	}
}

func BenchmarkDistinctObjects(b *testing.B) {
	d := storm.New(storm.Options{})
	names := make([]string, 1<<20)
	for i := range names {
		names[i] = fmt.Sprint("object-", i)
	}
	now, i := start, 0
	for b.Loop() {
		now = now.Add(time.Microsecond)
		d.Observe(storm.Change{Key: storm.Key{GroupResource: deployments, Name: names[i%len(names)]}, Time: now})
		i++
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "changes/s")
}

func BenchmarkHotObject(b *testing.B) {
	d := storm.New(storm.Options{})
	versions := []map[string]any{}
	for i := range 2 {
		u := &unstructured.Unstructured{}
		text := fmt.Sprintf(`{"apiVersion": "e/v1", "kind": "W", "status": {"at": "2026-01-01T00:00:0%dZ", "conditions": [{"type": "Ready", "status": "True"}]}}`, i)
		if err := u.UnmarshalJSON([]byte(text)); err != nil {
			b.Fatal(err)
		}
		versions = append(versions, u.Object)
	}
	fields := &metav1.FieldsV1{}
	fields.SetRawString(`{"f:status":{"f:at":{},"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:status":{}}}}}`)
	when := metav1.NewTime(start)
	managed := []metav1.ManagedFieldsEntry{{Manager: "op", Operation: "Apply", APIVersion: "e/v1", FieldsV1: fields, Time: &when}}
	now, i := start, 0
	for b.Loop() {
		now = now.Add(time.Millisecond)
		d.Observe(storm.Change{Key: storm.Key{GroupResource: deployments, Name: "x"}, Time: now, Object: versions[i%2], ManagedFields: managed})
		i++
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "changes/s")
}
