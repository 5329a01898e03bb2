package app_test

import (
	"context"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
)

var _ = Describe("A rollout", func() {
	It("is never called Ready before it is done", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		history := record(ctx, ns)
		a := createReady(ctx, newApp(ns, "shop", replicas(3)))
		for i := range 3 {
			change(ctx, a, func(a *quellv1alpha1.App) {
				a.Spec.Image = image + strconv.Itoa(i)
				*a.Spec.Replicas = int32(3 - 2*(i%2)) // at first the image alone, whose counts look right from the start
			})
			converge(ctx, a)
		}
		history.stop()
		Expect(history.apps).NotTo(BeEmpty())
		ready := 0
		for _, version := range history.apps {
			if isReady(version) {
				ready++
				Expect(history.rolledOut(version)).To(BeTrue(), "Ready at resourceVersion %s with status %+v, Deployments %s", version.ResourceVersion, version.Status, history)
			}
		}
		Expect(ready).To(BeNumerically(">=", 4))
	})

	It("scales to zero and back", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		a := createReady(ctx, newApp(ns, "shop", replicas(2)))
		change(ctx, a, func(a *quellv1alpha1.App) { *a.Spec.Replicas = 0 })
		converge(ctx, a)
		Expect(a.Status.Ready).To(Equal("0/0"))
		Expect(a.Status.Replicas).To(HaveValue(BeZero()))
		Expect(a.Status.Phase).To(Equal(quellv1alpha1.PhaseRunning))
		change(ctx, a, func(a *quellv1alpha1.App) { *a.Spec.Replicas = 2 })
		converge(ctx, a)
		Expect(a.Status.Ready).To(Equal("2/2"))
	})

	It("that lost a replica is Degraded until it is back", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		a := createReady(ctx, newApp(ns, "shop", replicas(2)))
		lost := pods(ctx, ns, map[string]string{"app.kubernetes.io/name": "shop"})[0]
		setReady(ctx, lost, corev1.ConditionFalse)
		eventuallyPhase(ctx, a, quellv1alpha1.PhaseDegraded)
		Expect(eventuallyCondition(ctx, a, quellv1alpha1.ConditionReconciling, "ReplicasUnavailable")).NotTo(BeEmpty())
		Eventually(ctx, func(g Gomega) { g.Expect(status(ctx, g, a).Ready).To(Equal("1/2")) }).Should(Succeed())
		Expect(meta.IsStatusConditionFalse(a.Status.Conditions, quellv1alpha1.ConditionReady)).To(BeTrue())

		setReady(ctx, lost, corev1.ConditionTrue)
		eventuallyPhase(ctx, a, quellv1alpha1.PhaseRunning)
		Expect(a.Status.Ready).To(Equal("2/2"))
		Expect(eventsOf(ctx, Default, a, "Ready")).NotTo(BeEmpty())
	})

	It("that makes no progress is Stalled, and goes on when the spec is corrected", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		a := createReady(ctx, newApp(ns, "shop"))
		change(ctx, a, func(a *quellv1alpha1.App) { // more than any node has
			a.Spec.ProgressDeadlineSeconds = 1
			a.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100k")}}
		})
		Expect(eventuallyCondition(ctx, a, quellv1alpha1.ConditionStalled, "Unschedulable")).
			To(Equal("no progress within the deadline: no node takes the Pods: not enough cpu"))
		Expect(a.Status.Phase).To(Equal(quellv1alpha1.PhaseFailed))
		Expect(meta.IsStatusConditionTrue(a.Status.Conditions, quellv1alpha1.ConditionAvailable)).To(BeTrue()) // the old ReplicaSet serves
		Expect(meta.FindStatusCondition(a.Status.Conditions, quellv1alpha1.ConditionReconciling)).To(BeNil())
		Eventually(ctx, func(g Gomega) { g.Expect(eventsOf(ctx, g, a, "Unschedulable")).To(HaveLen(1)) }).Should(Succeed())

		change(ctx, a, func(a *quellv1alpha1.App) { a.Spec.Resources = nil })
		converge(ctx, a)
		Expect(meta.FindStatusCondition(a.Status.Conditions, quellv1alpha1.ConditionStalled)).To(BeNil())
	})
})

// history holds every version that the API server had of the Apps and Deployments of a namespace.
type history struct {
	apps        []*quellv1alpha1.App
	deployments []*appsv1.Deployment
	stops       []func()
}

// record begins to watch a namespace.
func record(ctx context.Context, namespace string) *history {
	GinkgoHelper()
	h := &history{}
	watcher, err := client.NewWithWatch(cluster.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	follow(ctx, h, watcher, &quellv1alpha1.AppList{}, namespace, func(o any) { h.apps = append(h.apps, o.(*quellv1alpha1.App)) })
	follow(ctx, h, watcher, &appsv1.DeploymentList{}, namespace, func(o any) { h.deployments = append(h.deployments, o.(*appsv1.Deployment)) })
	return h
}

func follow(ctx context.Context, h *history, c client.WithWatch, list client.ObjectList, namespace string, add func(any)) {
	GinkgoHelper()
	w, err := c.Watch(ctx, list, client.InNamespace(namespace))
	Expect(err).NotTo(HaveOccurred())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range w.ResultChan() {
			if e.Type == watch.Added || e.Type == watch.Modified {
				add(e.Object)
			}
		}
	}()
	h.stops = append(h.stops, func() { w.Stop(); <-done })
}

func (h *history) stop() {
	for _, stop := range h.stops {
		stop()
	}
}

// rolledOut reports whether some version of the Deployment before this one of the App had done what the App asks. The
// versions of all objects come from one sequence.
func (h *history) rolledOut(a *quellv1alpha1.App) bool {
	for _, d := range h.deployments {
		if versionOf(d) < versionOf(a) && d.Name == a.Name && isRolledOut(d) &&
			d.Spec.Template.Spec.Containers[0].Image == a.Spec.Image && *d.Spec.Replicas == *a.Spec.Replicas {
			return true
		}
	}
	return false
}

func (h *history) String() string {
	var s string
	for _, d := range h.deployments {
		s += d.ResourceVersion + " " + d.Spec.Template.Spec.Containers[0].Image + " rolled out: " + strconv.FormatBool(isRolledOut(d)) + "\n"
	}
	return s
}

// isRolledOut follows kubectl rollout status.
func isRolledOut(d *appsv1.Deployment) bool {
	s := d.Status
	return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == *d.Spec.Replicas && s.Replicas == s.UpdatedReplicas && s.AvailableReplicas == s.UpdatedReplicas
}

func versionOf(o metav1.Object) int {
	GinkgoHelper()
	n, err := strconv.Atoi(o.GetResourceVersion())
	Expect(err).NotTo(HaveOccurred())
	return n
}

// setReady does what a kubelet does when a readiness probe fails or succeeds again.
func setReady(ctx context.Context, pod corev1.Pod, ready corev1.ConditionStatus) {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(&pod), &pod); err != nil {
			return err
		}
		for i := range pod.Status.Conditions {
			c := &pod.Status.Conditions[i]
			if c.Type == corev1.PodReady || c.Type == corev1.ContainersReady {
				c.Status, c.LastTransitionTime = ready, metav1.Now()
			}
		}
		return admin.Status().Update(ctx, &pod)
	})).To(Succeed())
}
