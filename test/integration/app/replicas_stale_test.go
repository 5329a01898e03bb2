package app_test

import (
	"context"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/app"
)

// outdated is a client with a cache that is behind: an App, its Deployment and the autoscalers are read as they once were. What it
// writes is real.
type outdated struct {
	client.Client
	app        *quellv1alpha1.App
	deployment *appsv1.Deployment
	scalers    []autoscalingv2.HorizontalPodAutoscaler
}

func (o *outdated) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch into := into.(type) {
	case *quellv1alpha1.App:
		o.app.DeepCopyInto(into)
	case *appsv1.Deployment:
		o.deployment.DeepCopyInto(into)
	case *autoscalingv2.HorizontalPodAutoscaler:
		i := slices.IndexFunc(o.scalers, func(h autoscalingv2.HorizontalPodAutoscaler) bool { return h.Name == key.Name })
		if i < 0 {
			return notFound(key)
		}
		o.scalers[i].DeepCopyInto(into)
	default:
		return notFound(key)
	}
	return nil
}

func notFound(key client.ObjectKey) error {
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// List finds nothing but autoscalers; the App of this spec has no other children.
func (o *outdated) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	if list, ok := into.(*autoscalingv2.HorizontalPodAutoscalerList); ok {
		for i := range o.scalers {
			list.Items = append(list.Items, *o.scalers[i].DeepCopy())
		}
	}
	return nil
}

// snapshot is how an App, its Deployment and the autoscalers are at the moment.
func snapshot(ctx context.Context, a *quellv1alpha1.App) *outdated {
	GinkgoHelper()
	s := &outdated{Client: admin, app: &quellv1alpha1.App{}, deployment: deployment(ctx, Default, a)}
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(a), s.app)).To(Succeed())
	var list autoscalingv2.HorizontalPodAutoscalerList
	Expect(admin.List(ctx, &list, client.InNamespace(a.Namespace))).To(Succeed())
	s.scalers = list.Items
	return s
}

// mixed has the App, the Deployment and the autoscalers of different moments.
func mixed(application, deployment, scalers *outdated) *outdated {
	return &outdated{Client: admin, app: application.app, deployment: deployment.deployment, scalers: scalers.scalers}
}

// reconcile runs one reconcile of an operator that has just started, or another leader's.
func (o *outdated) reconcile(ctx context.Context) {
	GinkgoHelper()
	r, err := app.New(app.Options{Client: o, Reader: admin, Events: &events.FakeRecorder{}})
	Expect(err).NotTo(HaveOccurred())
	_, err = r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o.app)})
	Expect(err).NotTo(HaveOccurred())
}

// reconcileAll reconciles on the ground of mixtures of these moments, the last of which is now: the autoscalers are those of now or
// as old as the App. It takes every second pair of an App and a Deployment, and the other half when there is one moment more.
func reconcileAll(ctx context.Context, past []*outdated) {
	GinkgoHelper()
	now := past[len(past)-1]
	for i, application := range past {
		for j, deployment := range past {
			if (i+j+len(past))%2 == 0 {
				mixed(application, deployment, application).reconcile(ctx)
				mixed(application, deployment, now).reconcile(ctx)
			}
		}
	}
}

var _ = Describe("The number of Pods stays as it is", func() {
	// The events raise the number of Pods, so that whatever is written on the word of an older moment would show.
	history := []struct {
		what   string
		happen func(context.Context, *quellv1alpha1.App)
		count  int32
	}{
		{"more are asked for", edited(func(a *quellv1alpha1.App) { a.Spec.Replicas = ptr.To[int32](2) }), 2},
		{"autoscaling begins", edited(func(a *quellv1alpha1.App) { autoscaled(3, 3)(&a.Spec) }), 3},
		{"the bounds move", edited(func(a *quellv1alpha1.App) { autoscaled(4, 9)(&a.Spec) }), 4},
		{"the bounds widen, and somebody scales", func(ctx context.Context, a *quellv1alpha1.App) {
			edited(func(a *quellv1alpha1.App) { autoscaled(1, 9)(&a.Spec) })(ctx, a)
			scale(ctx, a, 5, "kubectl")
		}, 5},
		{"autoscaling ends", edited(func(a *quellv1alpha1.App) { a.Spec.Autoscaling, a.Spec.Replicas = nil, ptr.To[int32](6) }), 6},
		{"a foreign autoscaler comes", func(ctx context.Context, a *quellv1alpha1.App) {
			Expect(admin.Create(ctx, newScaler(a.Namespace, "foreign", a.Name, 6, 9))).To(Succeed())
		}, 6},
		{"it moves", func(ctx context.Context, a *quellv1alpha1.App) {
			change(ctx, newScaler(a.Namespace, "foreign", "", 1, 1), func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Spec.MinReplicas = ptr.To[int32](7) })
		}, 7},
	}

	It("however old what the operator knows is", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		pods := countPods(ctx, ns)
		a := createReady(ctx, newApp(ns, "shop", minimal, func(s *quellv1alpha1.AppSpec) { s.RevisionHistoryLimit = ptr.To[int32](0) }))
		past := []*outdated{snapshot(ctx, a)}
		for i, event := range history {
			By(fmt.Sprintf("%s: %d Pods", event.what, event.count))
			// What differs from moment to moment makes each of them want to write.
			change(ctx, a, func(a *quellv1alpha1.App) { a.Spec.RevisionHistoryLimit = ptr.To(int32(i + 1)) })
			event.happen(ctx, a)
			eventuallyAsked(ctx, a, event.count)
			eventuallyReady(ctx, a, fmt.Sprintf("%d/%d", event.count, event.count))
			eventuallyKept(ctx, a, int32(i+1))
			pods.begin(ctx, a.Name, event.count)

			past = append(past, snapshot(ctx, a))
			whileAway(func() { reconcileAll(ctx, past) })
			pods.neverBelow(a.Name, event.count)
			Expect(*deployment(ctx, Default, a).Spec.Replicas).To(Equal(event.count))
		}
	})
})

func edited(f func(*quellv1alpha1.App)) func(context.Context, *quellv1alpha1.App) {
	return func(ctx context.Context, a *quellv1alpha1.App) {
		GinkgoHelper()
		change(ctx, a, f)
	}
}

// eventuallyKept waits until the Deployment keeps so many old ReplicaSets.
func eventuallyKept(ctx context.Context, a *quellv1alpha1.App, n int32) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) { g.Expect(*deployment(ctx, g, a).Spec.RevisionHistoryLimit).To(Equal(n)) }).Should(Succeed())
}
