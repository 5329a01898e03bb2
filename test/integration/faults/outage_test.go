package faults_test

import (
	"context"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/test/localcluster"
)

// failed reports whether a call did not reach what it was for.
func failed(c call) bool { return c.code == 0 || c.code >= http.StatusInternalServerError }

// informers is how many watches an operator has at most: of App, its children of 8 kinds, the CustomResourceDefinition.
const informers = 10

var _ = Describe("An outage", Serial, func() {
	DescribeTable("of the control plane in the middle of a rollout loses nothing, is not met with more than the back-off's calls, "+
		"and a converged App is not written because of it",
		func(ctx SpecContext, long bool, strike func(context.Context), heal func(context.Context)) {
			takesLong(long)
			ns, start := newNamespace(ctx), mark()
			calm, busy := newApp(ns, "calm", withAccount), newApp(ns, "busy")
			o := startOperator(ns)
			createReady(ctx, calm)
			createReady(ctx, busy)
			o.idle(ctx)
			o.forget()
			ask(ctx, busy, func(s *quellv1alpha1.AppSpec) { s.Image = imageNo(2); withBudget(s) })
			began := time.Now()
			strike(ctx)
			heal(ctx)
			took := time.Since(began)
			calls := o.sent(failed)
			converge(ctx, busy, calm)
			o.idle(ctx)
			bound := informers*2*backOffs(took, 800*time.Millisecond) + 3*backOffs(took, 5*time.Millisecond)
			ofCalm := o.count(func(c call) bool { return isWrite(c) && c.name == calm.Name })
			tell("down for %s: %d calls failed (bound %d); %d writes for the converged App (bound 0), %d in all for the other one", took.Round(100*time.Millisecond),
				len(calls), bound, ofCalm, o.count(isWrite))
			Expect(len(calls)).To(BeNumerically("<=", bound), words(calls))
			Expect(ofCalm).To(BeZero(), words(o.sent(ofLoop)))
			expectMadeOnce(start, ns)
			expectQuiet(ctx, ns)
		},
		Entry("API server killed", false, kill(localcluster.APIServer), restart(localcluster.APIServer)),
		Entry("API server restarted", true, nothing, restart(localcluster.APIServer)),
		Entry("etcd killed", false, kill(localcluster.Etcd), restart(localcluster.Etcd)),
		Entry("etcd restarted", true, nothing, restart(localcluster.Etcd)),
	)
})

func nothing(context.Context) {}

func kill(name localcluster.Component) func(context.Context) {
	return func(context.Context) {
		GinkgoHelper()
		Expect(cluster.Kill(name)).To(Succeed())
		time.Sleep(2 * time.Second) // the length of the outage, no wait for it
	}
}

func restart(name localcluster.Component) func(context.Context) {
	return func(ctx context.Context) {
		GinkgoHelper()
		Expect(cluster.Restart(ctx, name)).To(Succeed())
	}
}
