package faults_test

import (
	"net/http"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
)

// expired answers the first watches that go on from a version as if that version were too old, which makes the cache list anew.
func expired(times int64, count *atomic.Int64) fault {
	return func(c call, r *http.Request, send http.RoundTripper) (*http.Response, error) {
		if c.verb != "WATCH" || r.URL.Query().Get("resourceVersion") == "" || count.Add(1) > times {
			return nil, nil
		}
		return answered(r, send, false, http.StatusGone, "Expired", nil)
	}
}

var _ = Describe("Watches", func() {
	It("that are cut, or told 410 Gone, cost a converged App no write, and what was missed is made up for", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		a, b := newApp(ns, "shop", withAll), newApp(ns, "other")
		o := startOperator(ns)
		createReady(ctx, a)
		createReady(ctx, b)
		o.idle(ctx)

		By("cutting them while nothing happens")
		o.forget()
		cuts := o.cut()
		Eventually(ctx, func() int { return o.count(func(c call) bool { return c.verb == "WATCH" }) }).Should(BeNumerically(">=", cuts))
		o.idle(ctx)
		Expect(o.sent(ofLoop)).To(BeEmpty())

		By("telling them that their versions are gone")
		o.forget()
		var gone atomic.Int64
		o.breakWith(expired(int64(cuts), &gone))
		o.cut()
		Eventually(ctx, gone.Load).Should(BeNumerically(">=", cuts))
		o.idle(ctx)
		Expect(o.sent(ofLoop)).To(BeEmpty())

		By("hiding all that happens for a while")
		o.forget()
		o.breakWith(func(c call, r *http.Request, send http.RoundTripper) (*http.Response, error) {
			if !c.ofCache() {
				return nil, nil
			}
			return answered(r, send, false, http.StatusServiceUnavailable, "ServiceUnavailable", nil)
		})
		o.cut()
		ask(ctx, a, func(s *quellv1alpha1.AppSpec) { s.Image, s.Ingress = imageNo(2), nil })
		Expect(spoil(ctx, b, childKinds[1])).To(Succeed())
		Expect(remove(ctx, b, childKinds[0])).To(Succeed())
		Eventually(ctx, func() int {
			return o.count(func(c call) bool { return c.ofCache() && c.code == http.StatusServiceUnavailable })
		}).Should(BeNumerically(">=", cuts))
		Expect(o.count(isWrite)).To(BeZero())
		gone.Store(0)
		o.breakWith(expired(int64(cuts), &gone))
		converge(ctx, a, b)
		o.idle(ctx)
		writes := o.count(isChildWrite)
		tell("%d watches were cut three times, %d answered 410: no request while converged; 4 changes missed, %d writes of children made up for them (bound 6)", cuts, gone.Load(), writes)
		Expect(writes).To(BeNumerically("<=", 6), words(o.sent(ofLoop)))
		expectQuiet(ctx, ns)
	})

	It("that tell everything 3 s late cost at most 2 writes of children for each that is asked for, and 5 status applies"+
		"that tell everything 3 s late cost at most 2 writes of children for each that is asked for, and 5 status applies", func(ctx SpecContext) {
		ns, start := newNamespace(ctx), mark()
		a := newApp(ns, "shop", withAccount, withBudget)
		o := startOperator(ns)
		o.delay(3 * time.Second)
		createReady(ctx, a)
		o.idle(ctx)
		created := o.count(isChildWrite)
		o.forget()
		for n := range 6 {
			ask(ctx, a, func(s *quellv1alpha1.AppSpec) { s.Image, s.Replicas = imageNo(n), ptr.To(int32(1+n%3)) })
			time.Sleep(300 * time.Millisecond) // the pace of what happens, no wait for it
		}
		converge(ctx, a)
		time.Sleep(4 * time.Second) // the last of what is told late
		o.idle(ctx)
		children, statuses := o.count(isChildWrite), o.count(isStatusApply)
		tell("created with %d writes of 4 children (bound 8); 6 changes of the Deployment with %d writes of it (bound 12) and %d of the status (bound 30)", created, children, statuses)
		Expect(created).To(BeNumerically("<=", 8))
		Expect(children).To(BeNumerically("<=", 12), words(o.sent(ofLoop)))
		Expect(statuses).To(BeNumerically("<=", 30), words(o.sent(ofLoop)))
		expectMadeOnce(start, ns)
		expectQuiet(ctx, ns)
	})
})
