package app_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/test/localcluster"
)

var _ = Describe("A suspended App", func() {
	It("is Ready while nothing is held back, and applies what was when it is resumed", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		a := createReady(ctx, newApp(ns, "shop"))
		awaitIdle(ctx)

		By("suspending it")
		start := mark()
		change(ctx, a, suspend(true))
		eventuallyPhase(ctx, a, quellv1alpha1.PhaseSuspended)
		Expect(isReady(a)).To(BeTrue(), "status %+v", a.Status)
		expectCalm(ctx, ns, atRest)
		Expect(manager.writes(start, ns)).To(HaveLen(1), "the status")

		By("asking for something else")
		start = mark()
		change(ctx, a, func(a *quellv1alpha1.App) {
			a.Spec.Image, a.Spec.Ports = "registry.example.com/team/shop:2", nil
		})
		Expect(notReady(ctx, a, "Suspended")).To(And(
			ContainSubstring(`Deployment "shop"`), ContainSubstring(`.spec.template.spec.containers[name="app"].image`), ContainSubstring(`Service "shop"`)))
		Expect(meta.FindStatusCondition(a.Status.Conditions, quellv1alpha1.ConditionStalled)).To(BeNil())
		Expect(meta.FindStatusCondition(a.Status.Conditions, quellv1alpha1.ConditionReconciling)).To(BeNil())
		Expect(a.Status.Phase).To(Equal(quellv1alpha1.PhaseSuspended))
		Expect(deployment(ctx, Default, a).Spec.Template.Spec.Containers[0].Image).To(Equal(image))
		service(ctx, Default, a)

		By("scaling the Deployment by hand, which the status tells and nobody takes back")
		edit(func(d *appsv1.Deployment) { *d.Spec.Replicas = 2 })(ctx, a)
		Eventually(ctx, func(g Gomega) { g.Expect(*status(ctx, g, a).ReadyReplicas).To(BeEquivalentTo(2)) }).Should(Succeed())
		expectCalm(ctx, ns, atRest)
		for _, w := range manager.writes(start, ns) {
			Expect(w.Resource).To(BeElementOf("apps", "events"), w.Path)
		}

		By("resuming it")
		start = mark()
		change(ctx, a, suspend(false))
		converge(ctx, a)
		d := deployment(ctx, Default, a)
		Expect(d.Spec.Template.Spec.Containers[0].Image).To(HaveSuffix(":2"))
		Expect(*d.Spec.Replicas).To(BeEquivalentTo(1))
		Expect(apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(a), &corev1.Service{}))).To(BeTrue())
		writes := manager.writes(start, ns)
		Expect(count(writes, to("deployments"))).To(Equal(1), localcluster.Summary(writes))
		Expect(count(writes, to("services"))).To(Equal(1), localcluster.Summary(writes))
	})

	It("makes nothing before it is resumed", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		start := mark()
		a := create(ctx, newApp(ns, "shop", func(s *quellv1alpha1.AppSpec) { s.Suspend = ptr.To(true) }))
		Expect(notReady(ctx, a, "Suspended")).To(ContainSubstring(`Deployment "shop"; Service "shop"`))
		expectCalm(ctx, ns, atRest)
		Expect(manager.writes(start, ns)).To(HaveLen(1), "the status")
		change(ctx, a, suspend(false))
		converge(ctx, a)
	})

	It("can be deleted", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		a := createReady(ctx, newApp(ns, "shop"))
		change(ctx, a, suspend(true))
		eventuallyPhase(ctx, a, quellv1alpha1.PhaseSuspended)
		Expect(admin.Delete(ctx, a)).To(Succeed())
		Eventually(ctx, func(g Gomega) {
			g.Expect(apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(a), a))).To(BeTrue())
			g.Expect(apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(a), &appsv1.Deployment{}))).To(BeTrue())
		}).Should(Succeed())
	})
})

func suspend(on bool) func(*quellv1alpha1.App) {
	return func(a *quellv1alpha1.App) { a.Spec.Suspend = &on }
}

// notReady waits until the newest generation is not Ready for a reason, and returns the message.
func notReady(ctx context.Context, a *quellv1alpha1.App, reason string) string {
	GinkgoHelper()
	var message string
	Eventually(ctx, func(g Gomega) {
		s := status(ctx, g, a)
		c := meta.FindStatusCondition(s.Conditions, quellv1alpha1.ConditionReady)
		g.Expect(c).NotTo(BeNil())
		g.Expect(c.Status).To(Equal(metav1.ConditionFalse))
		g.Expect(c.Reason).To(Equal(reason), c.Message)
		g.Expect(s.ObservedGeneration).To(Equal(a.Generation))
		message = c.Message
	}).Should(Succeed())
	return message
}
