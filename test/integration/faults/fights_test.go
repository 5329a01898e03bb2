package faults_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/ssa"
)

// fight is a rival that forces one field again and again.
type fight struct {
	app *quellv1alpha1.App
	// each is the pause between two strikes.
	each time.Duration
	// ofStatus tells that it is the App's status; else it is a field of the Service.
	ofStatus bool
}

func (f fight) path() string {
	if f.ofStatus {
		return ".status.phase"
	}
	return ".spec.sessionAffinity"
}

// strike forces the field, by another value each time.
func (f fight) strike(ctx context.Context, n int) error {
	if f.ofStatus {
		return applyStatusAs(ctx, f.app, "rival", map[string]any{"phase": []any{"Pending", "Failed"}[n%2]})
	}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetNamespace(f.app.Namespace)
	u.SetName(f.app.Name)
	u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Service"))
	u.SetAnnotations(map[string]string{"struck": fmt.Sprint(n)}) // so that each strike is a write and wakes the operator
	u.Object["spec"] = map[string]any{"sessionAffinity": "None"}
	return admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("rival"), client.ForceOwnership)
}

// allowed is how many repairs the documented pace lets through within a time: the free ones, what of them comes back within the
// window, and one after each pause.
func allowed(p ssa.Pace, within time.Duration) int {
	n := p.Free + int(math.Ceil(float64(p.Free)*within.Seconds()/p.Window.Seconds()))
	for pause, at := p.Pause, p.Pause; at <= within; at, pause = at+pause, min(2*pause, p.MaxPause) {
		n++
	}
	return n
}

// fightFor is how long a fight lasts at least: longer than the first pause.
const fightFor = 15 * time.Second

var _ = Describe("A fight", func() {
	It("over a field of a child or of the status, with a rival at 1, 10 or 100 strikes a second, costs no more repairs "+
		"than the documented pace; rival and path are told; all heals when it stops", func(ctx SpecContext) {
		var fights []fight
		for _, ofStatus := range []bool{false, true} {
			for _, each := range []time.Duration{time.Second, 100 * time.Millisecond, 10 * time.Millisecond} {
				affine := func(s *quellv1alpha1.AppSpec) {
					s.Service = &quellv1alpha1.AppService{SessionAffinity: corev1.ServiceAffinityClientIP}
				}
				fights = append(fights, fight{newApp(newNamespace(ctx), "shop", affine), each, ofStatus})
			}
		}
		var mu sync.Mutex
		inParallel(len(fights), fights, func(f fight) {
			line := f.fight(ctx)
			mu.Lock()
			defer mu.Unlock()
			tell("%s", line)
		})
	})
})

// fight goes on for fightFor, and then until it is told of and over.
func (f fight) fight(ctx context.Context) string {
	GinkgoHelper()
	o := newOperator(f.app.Namespace)
	o.start()
	defer o.stop()
	createReady(ctx, f.app)
	o.idle(ctx)
	o.forget()
	began := time.Now()
	strikes := f.strikeFor(ctx, fightFor)
	took := time.Since(began)
	repairs, statuses, events := o.count(f.isRepair), o.count(isStatusApply), o.count(func(c call) bool { return c.resource == "events" })
	bound := allowed(ssa.DefaultContentionPace, took)
	line := fmt.Sprintf("%s at %.0f/s: %d strikes in %s, %d repairs (bound %d), %d status applies, %d requests for events", f.path(), 1/f.each.Seconds(), strikes,
		took.Round(time.Second), repairs, bound, statuses, events)
	Expect(repairs).To(BeNumerically("<=", bound), line)
	Expect(repairs).To(BeNumerically(">=", 3), "the field is fought for: %s", line)
	Expect(statuses).To(BeNumerically("<=", bound+4), "%s\n%s", line, words(o.sent(ofLoop)))
	Expect(events).To(BeNumerically("<=", bound+4), line)

	// The value heals when the pause ends, of which this takes the most away.
	o.clock.jump(20 * time.Minute)
	touch(ctx, f.app)
	Eventually(ctx, func() error { return f.healed(ctx) }).Should(Succeed())
	// It is said to be over after a calm time.
	o.clock.jump(20 * time.Minute)
	touch(ctx, f.app)
	converge(ctx, f.app)
	expectQuiet(ctx, f.app.Namespace)
	return line
}

// strikeFor strikes for a time, and until that is told, several times at once where one takes longer than the pace allows. It
// returns how often.
func (f fight) strikeFor(ctx context.Context, duration time.Duration) int {
	GinkgoHelper()
	var group errgroup.Group
	group.SetLimit(16)
	tick := time.NewTicker(f.each)
	defer tick.Stop()
	strikes := 0
	told := errors.New("not asked yet")
	for began := time.Now(); time.Since(began) < duration || told != nil; <-tick.C {
		if time.Since(began) > duration {
			Expect(time.Since(began)).To(BeNumerically("<", patience), "%s: %v", f.path(), told)
			told = f.told(ctx)
		}
		n := strikes
		group.Go(func() error { return f.strike(ctx, n) })
		strikes++
	}
	Expect(group.Wait()).To(Succeed())
	return strikes
}

func (f fight) isRepair(c call) bool {
	if f.ofStatus {
		return isStatusApply(c)
	}
	return c.resource == "services" && isChildWrite(c)
}

// told is nil when rival and path are told: by conditions, and, where the status itself is fought for, by an event.
func (f fight) told(ctx context.Context) error {
	var texts []string
	if f.ofStatus {
		var events eventsv1.EventList
		if err := admin.List(ctx, &events, client.InNamespace(f.app.Namespace)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Reason == "StatusContended" {
				texts = append(texts, e.Note)
			}
		}
	} else {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(f.app), f.app); err != nil {
			return err
		}
		for _, kind := range []string{quellv1alpha1.ConditionReconciling, quellv1alpha1.ConditionFieldConflict} {
			c := meta.FindStatusCondition(f.app.Status.Conditions, kind)
			if c == nil || c.Reason != "FieldContended" {
				return fmt.Errorf("condition %s is %+v", kind, c)
			}
			texts = append(texts, c.Message)
		}
	}
	for _, text := range texts {
		if !strings.Contains(text, f.path()) || !strings.Contains(text, `"rival" (Apply`) {
			return fmt.Errorf("it is told as %q", text)
		}
	}
	if len(texts) == 0 {
		return errors.New("it is not told")
	}
	return nil
}

func (f fight) healed(ctx context.Context) error {
	if f.ofStatus {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(f.app), f.app); err != nil || f.app.Status.Phase == quellv1alpha1.PhaseRunning {
			return err
		}
		return fmt.Errorf("phase is %s", f.app.Status.Phase)
	}
	var s corev1.Service
	if err := admin.Get(ctx, client.ObjectKeyFromObject(f.app), &s); err != nil || s.Spec.SessionAffinity == corev1.ServiceAffinityClientIP {
		return err
	}
	return fmt.Errorf("sessionAffinity is %s", s.Spec.SessionAffinity)
}
