package app

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/ssa"
)

// apiServer answers lists and counts them.
type apiServer struct {
	client.Reader
	pods   []corev1.Pod
	events []eventsv1.Event
	err    error
	lists  []string
}

func (s *apiServer) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	s.lists = append(s.lists, fmt.Sprintf("%T %v %v %d", list, o.LabelSelector, o.FieldSelector, o.Limit))
	switch l := list.(type) {
	case *metav1.PartialObjectMetadataList:
		for revision, hash := range []string{"old", "new"} {
			set := metav1.PartialObjectMetadata{}
			set.Labels = map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: hash}
			set.Annotations = map[string]string{annotationRevision: fmt.Sprint(revision + 1)}
			set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&metav1.ObjectMeta{Name: "shop", UID: "uid-2"}, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
			l.Items = append(l.Items, set)
		}
	case *corev1.PodList:
		l.Items = s.pods
	case *eventsv1.EventList:
		l.Items = s.events
	}
	return s.err
}

// rolloutOf is a Deployment on its way to its second revision, which last made progress so long before noon.
func rolloutOf(app *quellv1alpha1.App, progress time.Duration) *appsv1.Deployment {
	d := deployed(app, counts(5, 3, 1, 2), corev1.ConditionTrue, "ReplicaSetUpdated")
	d.Annotations = map[string]string{annotationRevision: "2"}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: selectorLabels(app)}
	d.Status.Conditions[1].LastUpdateTime = ago(progress)
	return d
}

func childOf(d *appsv1.Deployment, o ssa.Outcome) []applied {
	return []applied{{child: child{kind: kindDeployment, name: d.Name, live: d}, Result: ssa.Result{Outcome: o, Object: d, Sent: o != ssa.Unchanged}}}
}

// explorer is a Reconciler for its reading of Pods.
func explorer(server *apiServer) (*Reconciler, *testingclock.FakePassiveClock) {
	clock := testingclock.NewFakePassiveClock(noon)
	return &Reconciler{Options: Options{Reader: server, Clock: clock}, standing: newStandstills()}, clock
}

func crashing() []corev1.Pod {
	return []corev1.Pod{podWith("shop-1", restarted(waiting("CrashLoopBackOff", ""), 1, ended(1, "Error")))}
}

func TestPodsAreReadMoreAndMoreRarely(t *testing.T) {
	g, ctx, app := NewWithT(t), context.Background(), shop()
	server := &apiServer{pods: crashing()}
	r, clock := explorer(server)
	children := childOf(rolloutOf(app, time.Hour), ssa.Unchanged)
	var at []int
	for second := range 300 {
		clock.SetTime(noon.Add(time.Duration(second) * time.Second))
		before := len(server.lists)
		s := r.whyStuck(ctx, app, children)
		if len(server.lists) > before {
			at = append(at, second)
		}
		g.Expect(s.again).To(BeNumerically(">", 0))
		g.Expect(s.why != nil).To(Equal(second >= 10), "at %d s", second)
	}
	g.Expect(at).To(Equal([]int{10, 20, 40, 80, 140, 200, 260}))
	g.Expect(server.lists[:2]).To(Equal([]string{
		"*v1.PartialObjectMetadataList app.kubernetes.io/instance=shop,app.kubernetes.io/name=shop <nil> 0",
		"*v1.PodList app.kubernetes.io/instance=shop,app.kubernetes.io/name=shop,pod-template-hash=new <nil> 20",
	}))
}

func TestPodsAreNotRead(t *testing.T) {
	app := shop()
	behind := rolloutOf(app, time.Hour)
	behind.Generation++
	for name, children := range map[string][]applied{
		"of a rollout that is done":          childOf(running(app), ssa.Unchanged),
		"of a Deployment that was applied":   childOf(rolloutOf(app, time.Hour), ssa.Applied),
		"of a Deployment that is not there":  {{child: child{kind: kindDeployment}}},
		"of a generation that is not begun":  childOf(behind, ssa.Unchanged),
		"of somebody else's Deployment":      {{child: child{kind: kindDeployment, live: rolloutOf(app, time.Hour)}, foreign: "it has no owner"}},
		"of a rollout that makes progress":   childOf(rolloutOf(app, -5*time.Second), ssa.Unchanged),
		"of a clock that is ahead of ours":   childOf(rolloutOf(app, -time.Hour), ssa.Unchanged),
		"while nothing but others is asked":  {{child: child{kind: kindService, live: &corev1.Service{}}}},
		"of an App that is about to be gone": nil,
	} {
		t.Run(name, func(t *testing.T) {
			g, server := NewWithT(t), &apiServer{pods: crashing()}
			r, clock := explorer(server)
			for second := range 12 {
				clock.SetTime(noon.Add(time.Duration(second) * time.Second))
				g.Expect(r.whyStuck(context.Background(), app, children).why).To(BeNil())
			}
			g.Expect(server.lists).To(BeEmpty())
		})
	}
}

func TestPodsAreReadAtOnce(t *testing.T) {
	explainedBefore := func(app *quellv1alpha1.App) {
		app.Status.Conditions = []metav1.Condition{{Type: quellv1alpha1.ConditionReconciling, Reason: reasonImagePull, ObservedGeneration: app.Generation}}
	}
	missed := rolloutOf(shop(), -time.Hour)
	missed.Status.Conditions[1].Reason = reasonStuck
	for name, c := range map[string]struct {
		app        *quellv1alpha1.App
		deployment *appsv1.Deployment
	}{
		"after the deadline": {shop(), missed},
		"after a restart":    {shop(explainedBefore), rolloutOf(shop(), 0)},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r, _ := explorer(&apiServer{pods: crashing()})
			g.Expect(r.whyStuck(context.Background(), c.app, childOf(c.deployment, ssa.Unchanged)).why).NotTo(BeNil())
		})
	}
}

func TestACauseIsForgotten(t *testing.T) {
	newer := shop(func(app *quellv1alpha1.App) { app.Generation++ })
	for name, again := range map[string]func(*Reconciler) stuck{
		"when the rollout is done": func(r *Reconciler) stuck {
			return r.whyStuck(context.Background(), shop(), childOf(running(shop()), ssa.Unchanged))
		},
		"when the spec changes": func(r *Reconciler) stuck {
			return r.whyStuck(context.Background(), newer, childOf(rolloutOf(newer, 0), ssa.Unchanged))
		},
		"when the Deployment is applied anew": func(r *Reconciler) stuck {
			return r.whyStuck(context.Background(), shop(), childOf(rolloutOf(shop(), 0), ssa.Applied))
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r, clock := explorer(&apiServer{pods: crashing()})
			look := func() stuck {
				return r.whyStuck(context.Background(), shop(), childOf(rolloutOf(shop(), time.Hour), ssa.Unchanged))
			}
			look()
			clock.SetTime(noon.Add(quietTime))
			g.Expect(look().why).NotTo(BeNil())
			g.Expect(again(r).why).To(BeNil())
		})
	}
}

func TestACauseOutlivesAFailedRead(t *testing.T) {
	g, server := NewWithT(t), &apiServer{pods: crashing()}
	r, clock := explorer(server)
	look := func(after time.Duration) stuck {
		clock.SetTime(noon.Add(after))
		return r.whyStuck(context.Background(), shop(), childOf(rolloutOf(shop(), time.Hour), ssa.Unchanged))
	}
	look(0)
	known := look(quietTime)
	server.err = errors.New("connection refused")
	g.Expect(look(2 * quietTime)).To(Equal(stuck{why: known.why, again: 2 * quietTime}))
}

func TestEventsAreReadOfThePodThatWaitsForItsVolumes(t *testing.T) {
	g := NewWithT(t)
	uid := func(p *corev1.Pod) { p.UID = "uid-" + p.ObjectMeta.UID + "p" }
	server := &apiServer{
		pods:   []corev1.Pod{podWith("shop-2", waiting("ContainerCreating", "")), podWith("shop-1", waiting("PodInitializing", ""), uid), podWith("shop-0", runningSince(0))},
		events: []eventsv1.Event{failedMount(`MountVolume.SetUp failed for volume "tls" : secret "tls" not found`, 0)},
	}
	r, _ := explorer(server)
	app := shop(func(app *quellv1alpha1.App) {
		app.Status.Conditions = []metav1.Condition{{Type: quellv1alpha1.ConditionStalled, Reason: reasonMount, ObservedGeneration: app.Generation}}
	})
	s := r.whyStuck(context.Background(), app, childOf(rolloutOf(app, 0), ssa.Unchanged))
	g.Expect(s.why).To(HaveValue(Equal(finding{reasonMount, `a volume of the Pods cannot be mounted: Secret "tls" does not exist`})))
	g.Expect(server.lists).To(HaveLen(3))
	g.Expect(server.lists[2]).To(Equal("*v1.EventList <nil> regarding.uid=uid-p,type=Warning 20"))
}

func TestAQuotaIsToldWithoutReadingPods(t *testing.T) {
	g, server := NewWithT(t), &apiServer{}
	r, clock := explorer(server)
	d := rolloutOf(shop(), time.Hour)
	d.Status.Conditions = append(d.Status.Conditions, refusedWith("exceeded quota: team-a, requested: pods=1, used: pods=2, limited: pods=2").deployment.Status.Conditions...)
	r.whyStuck(context.Background(), shop(), childOf(d, ssa.Unchanged))
	clock.SetTime(noon.Add(quietTime))
	g.Expect(r.whyStuck(context.Background(), shop(), childOf(d, ssa.Unchanged)).why.reason).To(Equal(reasonQuota))
	g.Expect(server.lists).To(BeEmpty())
}
