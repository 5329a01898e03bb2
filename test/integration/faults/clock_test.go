package faults_test

import (
	"context"
	"maps"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
)

var _ = Describe("A clock that jumps", func() {
	It("an hour back or a day ahead, in the middle of a rollout and while a rival is held off, neither keeps anything "+
		"from being done nor makes it be done hotly", func(ctx SpecContext) {
		namespaces := map[time.Duration]string{-time.Hour: newNamespace(ctx), 24 * time.Hour: newNamespace(ctx)}
		inParallel(2, slices.Collect(maps.Keys(namespaces)), func(by time.Duration) { jump(ctx, by, namespaces[by]) })
	})
})

func jump(ctx context.Context, by time.Duration, ns string) {
	GinkgoHelper()
	a, o := newApp(ns, "shop", withAccount), newOperator(ns)
	o.start()
	defer o.stop()
	createReady(ctx, a)
	o.idle(ctx)
	o.forget()
	ask(ctx, a, withOtherImage)
	Eventually(ctx, func() int { return o.count(isStatusApply) }).Should(BeNumerically(">", 0))
	o.clock.jump(by)
	converge(ctx, a)
	o.idle(ctx)
	rollout := o.count(isWrite)

	o.forget()
	Eventually(ctx, func(g Gomega) {
		g.Expect(takeLabel(ctx, a)).To(Succeed())
		c := condition(ctx, g, a, quellv1alpha1.ConditionReconciling)
		g.Expect(c).NotTo(BeNil())
		g.Expect(c.Reason).To(Equal("FieldContended"))
	}).WithPolling(500 * time.Millisecond).Should(Succeed())
	o.clock.jump(by)
	touch(ctx, a)
	Eventually(ctx, func(g Gomega) {
		d := &appsv1.Deployment{}
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(a), d)).To(Succeed())
		g.Expect(d.Labels).To(HaveKeyWithValue("team", "a"))
	}).WithTimeout(time.Minute).Should(Succeed(), "jump by %s", by)
	repairs := o.count(isChildWrite)
	tell("by %s: the rollout cost %d writes (bound 12), the rival's field was repaired %d times (bound 5)", by, rollout, repairs)
	Expect(rollout).To(BeNumerically("<=", 12))
	Expect(repairs).To(BeNumerically("<=", 5))
}

// takeLabel has a rival set a label of an App's Deployment.
func takeLabel(ctx context.Context, a *quellv1alpha1.App) error {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"theirs"}}}`))
	return admin.Patch(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: a.Name}}, patch, client.FieldOwner("rival"))
}
