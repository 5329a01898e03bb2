package app_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/app"
	"github.com/hduolab/quell/test/localcluster"
)

var _ = Describe("A child that is not asked for any more", func() {
	It("is deleted with one request, and waited for in words while it has finalizers", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		a := createReady(ctx, newApp(ns, "shop"))
		held := service(ctx, Default, a)
		patchMeta(ctx, held, `{"metadata":{"finalizers":["example.com/hold"]}}`)
		awaitIdle(ctx)
		start := mark()
		change(ctx, a, func(a *quellv1alpha1.App) { a.Spec.Ports = nil })
		Expect(eventuallyCondition(ctx, a, quellv1alpha1.ConditionReconciling, "WaitingForDeletion")).To(
			And(ContainSubstring(`Service "shop"`), ContainSubstring("waits for its finalizers example.com/hold")))
		expectCalm(ctx, ns, atRest)
		writes := manager.writes(start, ns)
		Expect(count(writes, to("services"))).To(Equal(1), localcluster.Summary(writes))

		patchMeta(ctx, held, `{"metadata":{"finalizers":null}}`)
		converge(ctx, a)
		Expect(apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(held), held))).To(BeTrue())
	})

	It("stays when it is an orphan that merely has fields of ours", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		a := createReady(ctx, newApp(ns, "shop"))
		kept := service(ctx, Default, a)
		Expect(admin.Delete(ctx, a, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
		Eventually(ctx, func(g Gomega) {
			g.Expect(apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(a), a))).To(BeTrue())
			g.Expect(service(ctx, g, a).OwnerReferences).To(BeEmpty())
		}).Should(Succeed())

		start := mark()
		next := createReady(ctx, newApp(ns, "shop", minimal)) // takes the Deployment over and does not ask for the Service
		Expect(next.Status.Children).To(HaveLen(1))
		awaitIdle(ctx)
		Expect(count(manager.writes(start, ns), to("services"))).To(BeZero())
		Expect(service(ctx, Default, next).UID).To(Equal(kept.UID))
	})

	It("stays when somebody took the operator's label away", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		a := createReady(ctx, newApp(ns, "shop"))
		change(ctx, a, suspend(true))
		eventuallyPhase(ctx, a, quellv1alpha1.PhaseSuspended)
		kept := service(ctx, Default, a)
		patchMeta(ctx, kept, `{"metadata":{"labels":{"`+app.LabelManagedBy+`":"me"}}}`)
		change(ctx, a, func(a *quellv1alpha1.App) { a.Spec.Ports = nil })
		change(ctx, a, suspend(false))
		converge(ctx, a)
		awaitIdle(ctx)
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(kept), &corev1.Service{})).To(Succeed())
	})
})
