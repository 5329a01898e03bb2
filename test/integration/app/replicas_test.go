package app_test

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/test/localcluster"
)

var _ = Describe("The number of Pods", func() {
	It("goes over to the App's autoscaler, is left alone, and comes back", func(ctx SpecContext) {
		serveMetrics(ctx)
		ns := newNamespace(ctx)
		pods := countPods(ctx, ns)
		a := createReady(ctx, newApp(ns, "shop", replicas(2), milliCPU(100)))
		pods.begin(ctx, a.Name, 2)

		By("adding autoscaling under load: one Pod's worth is half a request")
		change(ctx, a, func(a *quellv1alpha1.App) { autoscaled(2, 6)(&a.Spec) })
		eventuallyAsked(ctx, a, 4, use(a, 200))
		eventuallyCondition(ctx, a, quellv1alpha1.ConditionAutoscalingActive, "OwnAutoscaler")
		pods.neverBelow(a.Name, 2)

		By("changing the spec meanwhile")
		pods.begin(ctx, a.Name, 4)
		change(ctx, a, func(a *quellv1alpha1.App) {
			a.Spec.Replicas, a.Spec.RevisionHistoryLimit = ptr.To[int32](1), ptr.To[int32](3)
		})
		Eventually(ctx, func(g Gomega) {
			use(a, 200)(ctx, g)
			g.Expect(*deployment(ctx, g, a).Spec.RevisionHistoryLimit).To(BeEquivalentTo(3))
		}).Should(Succeed())
		pods.neverBelow(a.Name, 4)

		By("being at rest")
		awaitIdle(ctx)
		since := mark()
		touch(ctx, a)
		awaitIdle(ctx)
		Expect(manager.writes(since, ns)).To(BeEmpty())

		By("losing load")
		eventuallyAsked(ctx, a, 2, use(a, 100))
		pods.neverBelow(a.Name, 2)
		eventuallyAsked(ctx, a, 4, use(a, 200))

		By("removing autoscaling")
		pods.begin(ctx, a.Name, 4)
		change(ctx, a, func(a *quellv1alpha1.App) { a.Spec.Replicas, a.Spec.Autoscaling = ptr.To[int32](3), nil })
		eventuallyAsked(ctx, a, 3)
		eventuallyNoAutoscaler(ctx, a)
		converge(ctx, a)
		pods.neverBelow(a.Name, 3)

		By("an autoscaler that writes once more after its end")
		scale(ctx, a, 5, "kube-controller-manager")
		eventuallyAsked(ctx, a, 3)
		converge(ctx, a)
		Expect(a.Status.Conflicts).To(BeEmpty())
		Expect(eventsOf(ctx, Default, a, "FieldTakenBack")).To(BeEmpty())
		pods.neverBelow(a.Name, 3)
	})

	It("is a foreign autoscaler's from the beginning, and follows it to whatever it targets", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		pods := countPods(ctx, ns)
		h := newScaler(ns, "keda-hpa-shop", "shop", 3, 5)
		Expect(admin.Create(ctx, h)).To(Succeed())
		a := createReady(ctx, newApp(ns, "shop", replicas(1)))
		pods.neverBelow(a.Name, 3)
		eventuallyScaledBy(ctx, a, "keda-hpa-shop")

		By("moving by it alone")
		pods.begin(ctx, a.Name, 3)
		change(ctx, h, func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Spec.MinReplicas = ptr.To[int32](4) })
		eventuallyAsked(ctx, a, 4)
		converge(ctx, a)
		since := mark()
		change(ctx, a, func(a *quellv1alpha1.App) { a.Spec.Replicas = ptr.To[int32](2) })
		scale(ctx, a, 5, "keda-operator")
		eventuallyReady(ctx, a, "5/5")
		awaitIdle(ctx)
		Expect(manager.requests(since, localcluster.Writes, to("deployments"))).To(BeEmpty())
		pods.neverBelow(a.Name, 3)

		By("losing it to another App")
		other := createReady(ctx, newApp(ns, "cart", replicas(2)))
		pods.begin(ctx, other.Name, 2)
		change(ctx, h, func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Spec.ScaleTargetRef.Name = "cart" })
		eventuallyAsked(ctx, a, 2)
		eventuallyAsked(ctx, other, 4)
		eventuallyScaledBy(ctx, other, "keda-hpa-shop")
		eventuallyNoAutoscaler(ctx, a)
		pods.neverBelow(a.Name, 2)

		By("outliving it")
		Expect(admin.Delete(ctx, h)).To(Succeed())
		eventuallyAsked(ctx, other, 2)
		eventuallyNoAutoscaler(ctx, other)
		pods.neverBelow(other.Name, 2)
		Expect(append(eventsOf(ctx, Default, a, "FieldTakenBack"), eventsOf(ctx, Default, other, "FieldTakenBack")...)).To(BeEmpty())
	})

	It("stays when the App's autoscaler or its Deployment is deleted by hand", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		pods := countPods(ctx, ns)
		a := createReady(ctx, newApp(ns, "shop", replicas(1), autoscaled(3, 5)))
		h := &autoscalingv2.HorizontalPodAutoscaler{}
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(a), h)).To(Succeed())
		pods.neverBelow(a.Name, 3)
		scale(ctx, a, 5, "kubectl")
		eventuallyReady(ctx, a, "5/5")
		pods.begin(ctx, a.Name, 5)

		Expect(admin.Delete(ctx, h)).To(Succeed())
		Eventually(ctx, func(g Gomega) {
			again := &autoscalingv2.HorizontalPodAutoscaler{}
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(a), again)).To(Succeed())
			g.Expect(again.UID).NotTo(Equal(h.UID))
			g.Expect(again.Status.CurrentReplicas).To(BeEquivalentTo(5))
		}).Should(Succeed())
		converge(ctx, a)
		pods.neverBelow(a.Name, 5)

		d := deployment(ctx, Default, a)
		Expect(admin.Delete(ctx, d, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
		Eventually(ctx, func(g Gomega) { g.Expect(deployment(ctx, g, a).UID).NotTo(Equal(d.UID)) }).Should(Succeed())
		converge(ctx, a)
		pods.neverBelow(a.Name, 5)
	})

	DescribeTable("is handed over and back under any conflictPolicy, which rules what kubectl scale does without an autoscaler",
		func(ctx SpecContext, mode quellv1alpha1.ConflictMode, scaled func(context.Context, *quellv1alpha1.App)) {
			ns := newNamespace(ctx)
			pods := countPods(ctx, ns)
			a := createReady(ctx, newApp(ns, "shop", replicas(2), minimal, func(s *quellv1alpha1.AppSpec) {
				s.ConflictPolicy = &quellv1alpha1.ConflictPolicy{Mode: mode}
			}))
			pods.begin(ctx, a.Name, 2)
			change(ctx, a, func(a *quellv1alpha1.App) { autoscaled(3, 5)(&a.Spec) })
			eventuallyReady(ctx, a, "3/3")
			kubectl("-n", ns, "scale", "deployment/shop", "--replicas=5")
			eventuallyReady(ctx, a, "5/5")
			change(ctx, a, func(a *quellv1alpha1.App) { a.Spec.Autoscaling = nil })
			eventuallyNoAutoscaler(ctx, a)
			eventuallyReady(ctx, a, "2/2")
			pods.neverBelow(a.Name, 2)
			Expect(a.Status.Conflicts).To(BeEmpty())
			Expect(eventsOf(ctx, Default, a, "FieldTakenBack")).To(BeEmpty())

			kubectl("-n", ns, "scale", "deployment/shop", "--replicas=4")
			scaled(ctx, a)
			awaitIdle(ctx)
			since := mark()
			touch(ctx, a)
			awaitIdle(ctx)
			Expect(manager.writes(since, ns)).To(BeEmpty())
			Expect(manager.requests(since, to("horizontalpodautoscalers"))).To(BeEmpty(), "nothing is read past the cache at rest")
			pods.neverBelow(a.Name, 2)
		},
		Entry("Force takes it back", quellv1alpha1.ConflictForce, func(ctx context.Context, a *quellv1alpha1.App) {
			Eventually(ctx, func(g Gomega) {
				events := eventsOf(ctx, g, a, "FieldTakenBack")
				g.Expect(events).To(HaveLen(1))
				g.Expect(events[0].Note).To(And(ContainSubstring(".spec.replicas"), ContainSubstring(`"kubectl" (Update, scale)`)))
			}).Should(Succeed())
			eventuallyReady(ctx, a, "2/2")
		}),
		Entry("Yield lets it stand", quellv1alpha1.ConflictYield, func(ctx context.Context, a *quellv1alpha1.App) {
			eventuallyReady(ctx, a, "4/4")
			Eventually(ctx, func(g Gomega) {
				g.Expect(status(ctx, g, a).Conflicts).To(ConsistOf(And(
					HaveField("Path", ".spec.replicas"), HaveField("Manager", "kubectl"), HaveField("Subresource", "scale"))))
			}).Should(Succeed())
			change(ctx, a, func(a *quellv1alpha1.App) { a.Spec.Replicas = ptr.To[int32](3) })
			eventuallyReady(ctx, a, "4/4")
		}),
		Entry("Report leaves the Deployment alone", quellv1alpha1.ConflictReport, func(ctx context.Context, a *quellv1alpha1.App) {
			Expect(eventuallyCondition(ctx, a, quellv1alpha1.ConditionStalled, "FieldConflict")).To(ContainSubstring(".spec.replicas"))
			Eventually(ctx, func(g Gomega) { g.Expect(status(ctx, g, a).Ready).To(Equal("4/4")) }).Should(Succeed())
		}),
	)

	It("is the App's own when an autoscaler scales the App", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		a := createReady(ctx, newApp(ns, "shop", replicas(1)))
		h := newScaler(ns, "by-app", "shop", 3, 5)
		h.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "quell.dev/v1alpha1", Kind: "App", Name: "shop"}
		Expect(admin.Create(ctx, h)).To(Succeed())
		eventuallyAsked(ctx, a, 3)
		eventuallyReady(ctx, a, "3/3")
		Expect(*a.Spec.Replicas).To(BeEquivalentTo(3))
		Expect(meta.FindStatusCondition(a.Status.Conditions, quellv1alpha1.ConditionAutoscalingActive)).To(BeNil())
	})
})

// eventuallyReady waits until an App is Ready with so many Pods.
func eventuallyReady(ctx context.Context, a *quellv1alpha1.App, ready string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		g.Expect(status(ctx, g, a).Ready).To(Equal(ready))
		g.Expect(isReady(a)).To(BeTrue(), "status %+v", a.Status)
	}).Should(Succeed())
}

// autoscaled asks for an autoscaler within bounds. It aims at half of the Pods' CPU requests; without measurements only the
// bounds move it.
func autoscaled(low, high int32) func(*quellv1alpha1.AppSpec) {
	return func(s *quellv1alpha1.AppSpec) {
		s.Autoscaling = &quellv1alpha1.AppAutoscaling{MinReplicas: low, MaxReplicas: high, CPUUtilization: 50}
	}
}

func milliCPU(n int64) func(*quellv1alpha1.AppSpec) {
	return func(s *quellv1alpha1.AppSpec) {
		s.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(n, resource.DecimalSI)}}
	}
}

// newScaler is an autoscaler that somebody else makes for an App's Deployment, not created yet.
func newScaler(namespace, name, target string, low, high int32) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: target},
			MinReplicas:    &low, MaxReplicas: high,
		},
	}
}

// scale writes the number of Pods through the scale subresource of the Deployment, as an autoscaler and kubectl scale do.
func scale(ctx context.Context, a *quellv1alpha1.App, n int32, fieldManager string) {
	GinkgoHelper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: a.Name}}
	body := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: n}}
	Expect(admin.SubResource("scale").Update(ctx, d, client.WithSubResourceBody(body), client.FieldOwner(fieldManager))).To(Succeed())
}

// eventuallyAsked waits until a Deployment asks for so many Pods, while something else goes on.
func eventuallyAsked(ctx context.Context, a *quellv1alpha1.App, n int32, meanwhile ...func(context.Context, Gomega)) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		for _, f := range meanwhile {
			f(ctx, g)
		}
		g.Expect(*deployment(ctx, g, a).Spec.Replicas).To(Equal(n))
	}).Should(Succeed())
}

// eventuallyScaledBy waits until an App says that an autoscaler without measurements sets the number of its Pods.
func eventuallyScaledBy(ctx context.Context, a *quellv1alpha1.App, name string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		c := meta.FindStatusCondition(status(ctx, g, a).Conditions, quellv1alpha1.ConditionAutoscalingActive)
		g.Expect(c).To(HaveValue(And(
			HaveField("Status", metav1.ConditionFalse), HaveField("Reason", "FailedGetResourceMetric"),
			HaveField("Message", ContainSubstring(fmt.Sprintf("%q", name))))))
	}).Should(Succeed())
}

// eventuallyNoAutoscaler waits until an App's autoscaler is gone, and its condition too.
func eventuallyNoAutoscaler(ctx context.Context, a *quellv1alpha1.App) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		err := admin.Get(ctx, client.ObjectKeyFromObject(a), &autoscalingv2.HorizontalPodAutoscaler{})
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
		g.Expect(meta.FindStatusCondition(status(ctx, g, a).Conditions, quellv1alpha1.ConditionAutoscalingActive)).To(BeNil())
	}).Should(Succeed())
}

// serveMetrics makes the API server serve what use writes as the measurements of a metrics server.
func serveMetrics(ctx context.Context) {
	GinkgoHelper()
	kubectl("apply", "-f", filepath.Join("testdata", "podmetrics.yaml"))
	Expect(localcluster.WaitEstablished(ctx, cluster.Config(), "pods.metrics.k8s.io")).To(Succeed())
}

// use lets an App use so much CPU, in thousandths, spread over its Pods.
func use(a *quellv1alpha1.App, milli int64) func(context.Context, Gomega) {
	return func(ctx context.Context, g Gomega) {
		var pods corev1.PodList
		g.Expect(admin.List(ctx, &pods, client.InNamespace(a.Namespace), client.MatchingLabels{"app.kubernetes.io/name": a.Name})).To(Succeed())
		for _, p := range pods.Items {
			m := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetrics",
				"timestamp": time.Now().UTC().Format(time.RFC3339), "window": "1s",
				"containers": []any{map[string]any{"name": "app", "usage": map[string]any{"cpu": fmt.Sprintf("%dm", milli/int64(len(pods.Items)))}}},
			}}
			m.SetNamespace(p.Namespace)
			m.SetName(p.Name)
			m.SetLabels(p.Labels)
			g.Expect(admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(m), client.FieldOwner("metrics-server"), client.ForceOwnership)).To(Succeed())
		}
	}
}
