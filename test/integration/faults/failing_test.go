package faults_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
)

// mishap is one way in which a request fails; committed says that the API server did what was asked all the same.
type mishap struct {
	name string
	do   func(r *http.Request, send http.RoundTripper, committed bool) (*http.Response, error)
}

func status(code int, reason string, header ...string) func(*http.Request, http.RoundTripper, bool) (*http.Response, error) {
	return func(r *http.Request, send http.RoundTripper, committed bool) (*http.Response, error) {
		h := http.Header{}
		for i := 0; i+1 < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return answered(r, send, committed, code, reason, h)
	}
}

func loss(err error) func(*http.Request, http.RoundTripper, bool) (*http.Response, error) {
	return func(r *http.Request, send http.RoundTripper, committed bool) (*http.Response, error) {
		return lost(r, send, committed, err)
	}
}

var mishaps = []mishap{
	{"429 with Retry-After", status(http.StatusTooManyRequests, "TooManyRequests", "Retry-After", "1")},
	{"500", status(http.StatusInternalServerError, "InternalError")},
	{"503", status(http.StatusServiceUnavailable, "ServiceUnavailable")},
	{"504", status(http.StatusGatewayTimeout, "Timeout")},
	{"timeout", loss(context.DeadlineExceeded)},
	{"connection reset", loss(errReset)},
}

// atRandom lets a share of all calls fail, half of the writes among them after they were done. Watches begin or fail.
func atRandom(r *rand.Rand, share float64, failed *int) fault {
	var mu sync.Mutex
	return func(c call, req *http.Request, send http.RoundTripper) (*http.Response, error) {
		mu.Lock()
		hit, m, committed := r.Float64() < share, mishaps[r.IntN(len(mishaps))], r.IntN(2) == 0
		if hit {
			*failed++
		}
		mu.Unlock()
		if !hit {
			return nil, nil
		}
		return m.do(req, send, committed && isWrite(c))
	}
}

var _ = Describe("Requests that fail", func() {
	It("at random, three of ten, cost at most 4 times the calls about children of an undisturbed life, and nothing is "+
		"made twice", func(ctx SpecContext) {
		r, faulty, calmly := random(), newNamespace(ctx), newNamespace(ctx)
		failed, start := 0, mark()
		var calls, usual int
		inParallel(2, []string{faulty, calmly}, func(ns string) {
			o := newOperator(ns)
			o.start()
			defer o.stop()
			if ns == calmly {
				live(ctx, ns)
				usual = o.count(aboutChildren)
				return
			}
			o.breakWith(atRandom(r, 0.3, &failed))
			live(ctx, ns)
			o.breakWith(nil)
			calls = o.count(aboutChildren)
			expectQuiet(ctx, ns)
		})
		tell("%d calls about children without faults, %d with (bound %d); %d calls of all kinds failed, half of the writes after they were done", usual, calls, 4*usual, failed)
		Expect(failed).To(BeNumerically(">", 20))
		Expect(calls).To(BeNumerically("<=", 4*usual))
		expectMadeOnce(start, faulty)
	})

	It("all of them are not retried hotly: each App costs at most 2 calls for each doubling of the back-off from 5 ms; "+
		"all heals when they stop", func(ctx SpecContext) {
		var cases []failing
		for _, m := range mishaps {
			for _, committed := range []bool{false, true} {
				cases = append(cases, failing{m, committed, newApp(newNamespace(ctx), "shop")})
			}
		}
		var mu sync.Mutex
		inParallel(len(cases), cases, func(c failing) {
			calls, took, bound := c.fail(ctx)
			mu.Lock()
			defer mu.Unlock()
			tell("%s, done all the same: %t: %d calls failed in %s (bound %d)", c.name, c.committed, calls, took.Round(time.Millisecond), bound)
			Expect(calls).To(BeNumerically("<=", bound))
		})
	})
})

// live is a life of three Apps: they are made, changed twice, and one is deleted.
func live(ctx context.Context, ns string) {
	GinkgoHelper()
	apps := make([]*quellv1alpha1.App, 3)
	for i := range apps {
		apps[i] = create(ctx, newApp(ns, fmt.Sprintf("shop-%d", i), withAccount, withPolicy))
	}
	converge(ctx, apps...)
	for _, a := range apps {
		ask(ctx, a, otherSpec)
	}
	converge(ctx, apps...)
	for _, a := range apps {
		ask(ctx, a, func(s *quellv1alpha1.AppSpec) { withIngress(s); s.Image = imageNo(3) })
	}
	converge(ctx, apps...)
	deleteInForeground(ctx, apps[0])
	awaitGone(ctx, apps[0])
}

// failing is an App for which every write fails in one way.
type failing struct {
	mishap
	committed bool
	app       *quellv1alpha1.App
}

// failingFor is for how long; the work queue backs off to about the same.
const failingFor = 4 * time.Second

func (c failing) fail(ctx context.Context) (calls int, took time.Duration, bound int) {
	GinkgoHelper()
	o := newOperator(c.app.Namespace)
	o.start()
	defer o.stop()
	createReady(ctx, c.app)
	o.idle(ctx)
	o.forget()
	o.breakWith(func(call call, r *http.Request, send http.RoundTripper) (*http.Response, error) {
		if !isWrite(call) {
			return nil, nil
		}
		return c.do(r, send, c.committed)
	})
	began := time.Now()
	ask(ctx, c.app, func(s *quellv1alpha1.AppSpec) { s.Image, s.Replicas = imageNo(2), ptr.To[int32](1) })
	least := map[bool]int{true: 1, false: 5}[c.committed] // what was done all the same is not tried again once it is seen
	Eventually(ctx, func() bool { return time.Since(began) > failingFor && o.count(isWrite) >= least }).Should(BeTrue())
	calls, took = o.count(isWrite), time.Since(began)
	o.breakWith(nil)
	converge(ctx, c.app)
	// Each step of the back-off writes the Deployment and the status; the rollout that a lost answer set going wakes the loop beside it.
	bound = 2 * backOffs(took, 5*time.Millisecond)
	if c.committed {
		bound += 2 * rolloutSteps
	}
	return calls, took, bound
}

// rolloutSteps is how often a rollout of two Pods wakes the loop at most.
const rolloutSteps = 8

// backOffs is how often something is tried within a time by a back-off that begins with first and doubles.
func backOffs(within, first time.Duration) int {
	return int(math.Ceil(math.Log2(float64(within)/float64(first)))) + 2
}
