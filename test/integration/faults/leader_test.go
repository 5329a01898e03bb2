package faults_test

import (
	"context"
	"net/http"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/ssa"
)

// held is a fault that holds the writes of one resource back until release is called, and answers no request for a Lease.
func held(resource string) (broken fault, caught func() int, release func()) {
	var mu sync.Mutex
	n, gate := 0, make(chan struct{})
	broken = func(c call, r *http.Request, send http.RoundTripper) (*http.Response, error) {
		switch {
		case c.resource == "leases":
			return lost(r, send, false, errReset)
		case c.resource == resource && isChildWrite(c):
			mu.Lock()
			n++
			mu.Unlock()
			<-gate
			// What was sent is on its way, although the process has stopped meanwhile.
			return send.RoundTrip(r.WithContext(context.WithoutCancel(r.Context())))
		}
		return nil, nil
	}
	caught = func() int { mu.Lock(); defer mu.Unlock(); return n }
	return broken, caught, sync.OnceFunc(func() { close(gate) })
}

func wasAccepted(c call) bool { return isChildWrite(c) && c.code < http.StatusBadRequest }

var _ = Describe("Two processes", func() {
	DescribeTable("of which the former leader's write of a child arrives after the next one's cost one repair at most; the newest "+
		"spec is what stays",
		func(ctx SpecContext, long bool, resource string) {
			takesLong(long)
			ns, start := newNamespace(ctx), mark()
			a := newApp(ns, "shop", withAccount)
			former, next := newOperator(ns), newOperator(ns)
			former.elect, next.elect = true, true
			former.start()
			DeferCleanup(former.stop)
			createReady(ctx, a)
			former.idle(ctx)

			By("holding back what the leader writes, and its lease")
			broken, caught, release := held(resource)
			DeferCleanup(release)
			former.forget()
			former.breakWith(broken)
			ask(ctx, a, func(s *quellv1alpha1.AppSpec) {
				s.Image, s.CommonLabels = imageNo(2), map[string]string{"team": "b"}
			})
			Eventually(ctx, caught).Should(BeNumerically(">", 0))
			next.start()
			DeferCleanup(next.stop)
			ask(ctx, a, func(s *quellv1alpha1.AppSpec) {
				s.Image, s.CommonLabels = imageNo(3), map[string]string{"team": "c"}
			})
			converge(ctx, a)
			next.idle(ctx)
			before := next.count(isChildWrite)

			By("letting the late write through")
			release()
			Eventually(ctx, func() bool {
				select {
				case <-former.ended:
					return true
				default:
					return false
				}
			}).Should(BeTrue())
			next.idle(ctx)
			converge(ctx, a)
			late, repairs := former.sent(isChildWrite), next.count(isChildWrite)-before
			tell("late writes of %s: %v; the next leader repaired with %d (bound 1)", resource, late, repairs)
			Expect(former.count(func(c call) bool { return isChildWrite(c) && c.resource == resource && c.code > 0 })).To(Equal(1), "the late write arrived")
			Expect(repairs).To(BeNumerically("<=", 1))
			expectMadeOnce(start, ns)
			expectQuiet(ctx, ns)
		},
		Entry("the Deployment, which is written for the version that was seen only", true, "deployments"),
		Entry("the Service, which any newest writer wins", false, "services"),
	)

	It("of one version that both lead for a while write at most twice as much as one, and are quiet", func(ctx SpecContext) {
		ns, start := newNamespace(ctx), mark()
		one, two := startOperator(ns), startOperator(ns)
		a := createReady(ctx, newApp(ns, "shop", withAccount, withBudget))
		for n := 2; n < 6; n++ {
			ask(ctx, a, func(s *quellv1alpha1.AppSpec) { s.Image, s.Replicas = imageNo(n), ptr.To(int32(1+n%3)) })
			converge(ctx, a)
		}
		one.idle(ctx)
		two.idle(ctx)
		done := one.count(wasAccepted) + two.count(wasAccepted)
		all := one.count(isChildWrite) + two.count(isChildWrite)
		tell("4 children made and 4 changes by two leaders: %d writes of children (bound 16), %d with those that were refused (bound 24), %d and %d of the status",
			done, all, one.count(isStatusApply), two.count(isStatusApply))
		Expect(done).To(BeNumerically("<=", 16))
		Expect(all).To(BeNumerically("<=", 24))
		expectMadeOnce(start, ns)
		expectQuiet(ctx, ns)
	})

	It("of different versions that both lead for a while do not storm: the status they disagree about is written at the "+
		"documented pace of contention by each", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		one, two := newOperator(ns), newOperator(ns)
		two.version = "v0.0.1-test"
		one.start()
		DeferCleanup(one.stop)
		a := createReady(ctx, newApp(ns, "shop"))
		one.idle(ctx)
		one.forget()
		two.start()
		DeferCleanup(two.stop)
		began := time.Now()
		Eventually(ctx, func() time.Duration {
			touch(ctx, a) // wakes both, which their own writes do not
			return time.Since(began)
		}).WithPolling(500 * time.Millisecond).Should(BeNumerically(">", fightFor))
		took := time.Since(began)
		writes := []int{one.count(isStatusApply), two.count(isStatusApply)}
		bound := allowed(ssa.DefaultContentionPace, took) + 1
		tell("two versions for %s: %v status applies (bound %d each), %d and %d writes of children (bound 0)", took.Round(time.Second), writes, bound,
			one.count(isChildWrite), two.count(isChildWrite))
		Expect(writes).To(HaveEach(BeNumerically("<=", bound)))
		Expect(one.count(isChildWrite) + two.count(isChildWrite)).To(BeZero())
		two.stop()
		one.clock.jump(20 * time.Minute)
		touch(ctx, a)
		converge(ctx, a)
		expectQuiet(ctx, ns)
	})
})
