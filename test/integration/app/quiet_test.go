package app_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/test/localcluster"
)

var _ = Describe("A converged operator", func() {
	It("writes nothing for 100 Apps, watched and restarted", func(ctx SpecContext) {
		ns, start := newNamespace(ctx), mark()
		apps := make([]*quellv1alpha1.App, 100)
		for i, name := range named("shop", len(apps)) {
			apps[i] = create(ctx, newApp(ns, name))
		}
		for _, a := range apps {
			converge(ctx, a)
		}
		expectCost(manager.writes(start, ns), 2, 3)

		By("watching it")
		since, before := mark(), versions(ctx, ns)
		expectQuiet(ctx, since, ns)

		By("restarting it")
		done := reconciles()
		manager.restart()
		Eventually(ctx, reconciles).Should(BeNumerically(">=", done+len(apps)))
		expectQuiet(ctx, since, ns)
		Expect(versions(ctx, ns)).To(Equal(before))
	})

	It("brings an App to Ready with two child applies and three status applies", func(ctx SpecContext) {
		ns, start := newNamespace(ctx), mark()
		createReady(ctx, newApp(ns, "shop", replicas(3)))
		expectCost(manager.writes(start, ns), 2, 3)
	})

	It("brings a minimal App to Ready with one child apply and three status applies", func(ctx SpecContext) {
		ns, start := newNamespace(ctx), mark()
		createReady(ctx, newApp(ns, "shop", minimal))
		expectCost(manager.writes(start, ns), 1, 3)
	})

	It("is not woken by its own status write", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		a := createReady(ctx, newApp(ns, "shop"))
		var start localcluster.Mark
		policy := quellv1alpha1.ConflictYield
		// What earlier specs left may wake the operator too while it goes away, so that a single try says little.
		Eventually(ctx, func() int {
			awaitIdle(ctx)
			before := reconciles()
			start = mark()
			policy = map[quellv1alpha1.ConflictMode]quellv1alpha1.ConflictMode{
				quellv1alpha1.ConflictYield: quellv1alpha1.ConflictForce, quellv1alpha1.ConflictForce: quellv1alpha1.ConflictYield,
			}[policy]
			change(ctx, a, func(a *quellv1alpha1.App) { a.Spec.ConflictPolicy = &quellv1alpha1.ConflictPolicy{Mode: policy} })
			converge(ctx, a) // the status has the new generation
			awaitIdle(ctx)
			return reconciles() - before
		}).WithTimeout(time.Minute).WithPolling(pollEach).Should(Equal(1))
		Expect(manager.writes(start, ns)).To(HaveLen(1))
	})
})

// awaitIdle waits until no reconcile has begun for longer than details of a status are collected.
func awaitIdle(ctx context.Context) {
	GinkgoHelper()
	last, at := reconciles(), time.Now()
	Eventually(ctx, func() time.Duration {
		if n := reconciles(); n != last {
			last, at = n, time.Now()
		}
		return time.Since(at)
	}).Should(BeNumerically(">", 2500*time.Millisecond))
}

// detailsEvery is how long replica counts of a status are collected before they are written alone.
const detailsEvery = 2 * time.Second

// expectCost bounds the child and status applies of each App in a namespace from its creation to Ready. A rollout that takes longer may
// show its counts meanwhile, once in each detailsEvery.
func expectCost(writes []localcluster.Request, children, statuses int) {
	GinkgoHelper()
	child, stat := map[string]int{}, map[string]int{}
	first := map[string]time.Time{}
	worstChild, worstStatus, tooMany := 0, 0, []string{}
	for _, w := range writes {
		switch {
		case to("apps/status")(w):
			if stat[w.Name]++; stat[w.Name] == 1 {
				first[w.Name] = w.Time
			}
			worstStatus = max(worstStatus, stat[w.Name])
			if took := w.Time.Sub(first[w.Name]); stat[w.Name] > statuses+int(took/detailsEvery) {
				tooMany = append(tooMany, fmt.Sprintf("%s: %d status applies within %s", w.Name, stat[w.Name], took))
			}
		case w.Resource != "events":
			child[w.Name]++
			worstChild = max(worstChild, child[w.Name])
		}
	}
	AddReportEntry("worst App", map[string]int{"child applies": worstChild, "status applies": worstStatus, "Apps": len(stat), "writes": len(writes)})
	Expect(child).NotTo(BeEmpty())
	Expect(worstChild).To(BeNumerically("<=", children), localcluster.Summary(writes))
	Expect(tooMany).To(BeEmpty(), localcluster.Summary(writes))
}

func expectQuiet(ctx context.Context, since localcluster.Mark, namespace string) {
	GinkgoHelper()
	Consistently(ctx, func() string { return localcluster.Summary(manager.writes(since, namespace)) }, watchTime(), time.Second).
		Should(Equal(localcluster.Summary(nil)))
}

// versions are the resourceVersions of all Apps and children in a namespace.
func versions(ctx context.Context, namespace string) map[string]string {
	GinkgoHelper()
	found := map[string]string{}
	for _, list := range []client.ObjectList{&quellv1alpha1.AppList{}, &appsv1.DeploymentList{}, &corev1.ServiceList{}} {
		Expect(admin.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
		eachItem(list, func(o client.Object) { found[string(o.GetUID())+" "+o.GetName()] = o.GetResourceVersion() })
	}
	Expect(found).NotTo(BeEmpty())
	return found
}
