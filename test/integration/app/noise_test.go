package app_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
)

var _ = Describe("What others write to a child without changing it", func() {
	It("is no rollout: annotations, each of which makes a new generation, cost no write", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		a := createReady(ctx, newApp(ns, "shop", replicas(2)))
		d, start := deployment(ctx, Default, a), mark()
		for i := range 30 {
			patch := fmt.Sprintf(`{"metadata":{"annotations":{"seen":"%d"}}}`, i)
			Expect(admin.Patch(ctx, d, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
		}
		Expect(d.Generation).To(BeNumerically(">", 30))
		Eventually(ctx, func(g Gomega) {
			d := deployment(ctx, g, a)
			g.Expect(d.Status.ObservedGeneration).To(Equal(d.Generation))
		}).Should(Succeed())
		awaitIdle(ctx)
		Expect(manager.writes(start, ns)).To(BeEmpty())
	})
})

var _ = Describe("An environment variable from a field", func() {
	It("is in place although the API server adds a default to its atomic reference", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		a := createReady(ctx, newApp(ns, "shop", func(s *quellv1alpha1.AppSpec) {
			s.Env = []corev1.EnvVar{{Name: "POD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}
		}))
		start := mark()
		manager.restart()
		awaitIdle(ctx)
		touch(ctx, a)
		awaitIdle(ctx)
		Expect(manager.writes(start, ns)).To(BeEmpty())
	})
})

var _ = Describe("An event that comes again", func() {
	It("is counted in one object, although the App has another version each time", func(ctx SpecContext) {
		a := createReady(ctx, newApp(newNamespace(ctx), "shop"))
		for n := int32(2); n <= 4; n++ {
			change(ctx, a, func(a *quellv1alpha1.App) { a.Spec.Replicas = &n })
			converge(ctx, a)
		}
		Eventually(ctx, func(g Gomega) {
			ready := eventsOf(ctx, g, a, "Ready")
			g.Expect(ready).To(HaveLen(1))
			g.Expect(ready[0].Series).NotTo(BeNil())
		}).Should(Succeed())
	})
})
