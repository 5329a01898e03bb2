package faults_test

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
)

var _ = Describe("A deletion in the middle of a rollout", func() {
	It("in the foreground, in the background or orphaning makes no child anew, and an App made again under the same "+
		"name gets what it asks for", func(ctx SpecContext) {
		var cases []deletion
		for _, p := range []metav1.DeletionPropagation{metav1.DeletePropagationForeground, metav1.DeletePropagationBackground, metav1.DeletePropagationOrphan} {
			cases = append(cases, deletion{p, newNamespace(ctx)})
		}
		inParallel(len(cases), cases, func(d deletion) { d.suffer(ctx) })
	})

	It("of the namespace is not worked against: as its children go one by one, each is asked for and refused at most "+
		"once for each that went", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		a := newApp(ns, "shop", withAccount, withBudget, withIngress)
		o := startOperator(ns)
		createReady(ctx, a)
		o.idle(ctx)
		// Something that holds the namespace up, and the App with it, while its children go.
		hold := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "hold", Finalizers: []string{"example.com/hold"}}}
		Expect(admin.Create(ctx, hold)).To(Succeed())
		change(ctx, a, func(a *quellv1alpha1.App) { controllerutil.AddFinalizer(a, "example.com/hold") })
		release := func(ctx context.Context) {
			_ = tryChange(ctx, a, func(a *quellv1alpha1.App) { controllerutil.RemoveFinalizer(a, "example.com/hold") })
			_ = tryChange(ctx, hold, func(c *corev1.ConfigMap) { c.Finalizers = nil })
		}
		DeferCleanup(func(ctx SpecContext) { release(ctx) })
		o.idle(ctx)
		o.forget()
		Expect(admin.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})).To(Succeed())
		Eventually(ctx, func() string { return left(ctx, a) }).Should(BeEmpty())
		o.idle(ctx)
		const children = 5
		calls, bound := o.count(aboutChildren), children*(children+1)
		tell("namespace terminating with %d children: %d calls about them (bound %d), %d refused", children, calls, bound, o.count(func(c call) bool { return c.code == http.StatusForbidden }))
		Expect(calls).To(BeNumerically("<=", bound), words(o.sent(ofLoop)))
		release(ctx)
		Eventually(ctx, func() bool {
			return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKey{Name: ns}, &corev1.Namespace{}))
		}).Should(BeTrue())
	})
})

// deletion is one way to delete an App, in a namespace of its own.
type deletion struct {
	propagation metav1.DeletionPropagation
	ns          string
}

func (d deletion) suffer(ctx context.Context) {
	GinkgoHelper()
	start, a, o := mark(), newApp(d.ns, "shop", withAccount, withBudget), newOperator(d.ns)
	o.start()
	defer o.stop()
	createReady(ctx, a)
	before := uids(ctx, a)
	o.forget()
	ask(ctx, a, withOtherImage)
	Eventually(ctx, func() int { return o.count(isChildWrite) }).Should(BeNumerically(">", 0))
	Expect(admin.Delete(ctx, a, client.PropagationPolicy(d.propagation))).To(Succeed())
	orphans := d.propagation == metav1.DeletePropagationOrphan
	if orphans {
		Eventually(ctx, func() bool { return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(a), a.DeepCopy())) }).Should(BeTrue())
	} else {
		awaitGone(ctx, a)
	}
	o.idle(ctx)
	writes := o.count(isChildWrite)
	tell("%s: %d writes of children from the change on (bound 2)", d.propagation, writes)
	Expect(writes).To(BeNumerically("<=", 2), words(o.sent(ofLoop)))
	expectMadeOnce(start, d.ns)

	again := newApp(d.ns, "shop", withAccount, withBudget)
	if orphans {
		Expect(uids(ctx, a)).To(Equal(before), "what was orphaned stays")
	}
	createReady(ctx, again)
	if orphans {
		Expect(uids(ctx, again)).To(Equal(before), "what was left behind is taken over as it is")
	}
	expectQuiet(ctx, d.ns)
}

// uids are those of an App's children.
func uids(ctx context.Context, a *quellv1alpha1.App) map[string]types.UID {
	GinkgoHelper()
	found := map[string]types.UID{}
	for _, k := range childKinds {
		o := k.empty()
		if err := admin.Get(ctx, client.ObjectKeyFromObject(a), o); err == nil {
			found[k.name] = o.GetUID()
		}
	}
	Expect(found).NotTo(BeEmpty())
	return found
}
