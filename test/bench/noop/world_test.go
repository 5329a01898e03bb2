package noop

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/test/bench/rivals"
	"github.com/hduolab/quell/test/localcluster"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// patience bounds a wait for what has to happen; it is no measure.
	patience = time.Minute
	pollEach = 20 * time.Millisecond
	replicas = 2
)

// site is the control plane of all benchmarks, which stand for the Deployment controller themselves.
type site struct {
	cluster *localcluster.Cluster
	// admin may do everything; what it does is not counted.
	admin client.Client
}

func startSite(tb testing.TB) site {
	tb.Helper()
	ctrl.SetLogger(logr.Discard())
	g := NewWithT(tb)
	cluster, err := localcluster.Start(tb.Context(), localcluster.Options{ControlPlaneOnly: true})
	g.Expect(err).NotTo(HaveOccurred())
	tb.Cleanup(func() { g.Expect(cluster.Stop()).To(Succeed()) })
	admin, err := rivals.Install(tb.Context(), cluster.Config())
	g.Expect(err).NotTo(HaveOccurred())
	return site{cluster, admin}
}

// contestant is a rival at work on one App that is Ready.
type contestant struct {
	site
	reconcile.Reconciler
	request reconcile.Request
	agent   string
	sent    *atomic.Int64
}

// started counts contestants: each has a namespace and a user agent of its own.
var started atomic.Int64

// directly marks the requests of the reconciles that are measured, as opposed to those of the manager's own workers.
type directly struct{}

// measured ends the user agent of such requests.
const measured = "-measured"

// start lets a rival's manager bring one App to Ready, and stops it with the test.
func (s site) start(tb testing.TB, rival rivals.Rival) *contestant {
	tb.Helper()
	c := &contestant{site: s, agent: fmt.Sprintf("noop-%s-%d", rival.Name, started.Add(1)), sent: &atomic.Int64{}}
	config := s.cluster.Config()
	config.QPS, config.UserAgent = -1, c.agent
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{next, c.agent, c.sent} })
	g := NewWithT(tb)
	reconciler, stop, err := rival.Start(tb.Context(), config)
	g.Expect(err).NotTo(HaveOccurred())
	tb.Cleanup(func() { g.Expect(stop()).To(Succeed()) })
	c.Reconciler, c.request.NamespacedName = reconciler, client.ObjectKey{Namespace: c.agent, Name: "shop"}
	c.makeReady(tb)
	return c
}

// counter counts the requests of measured reconciles, and gives them a user agent of their own.
type counter struct {
	next  http.RoundTripper
	agent string
	sent  *atomic.Int64
}

func (c counter) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Context().Value(directly{}) != nil {
		c.sent.Add(1)
		r = r.Clone(r.Context())
		r.Header.Set("User-Agent", c.agent+measured)
	}
	return c.next.RoundTrip(r)
}

// makeReady creates the App and plays its Deployment's status.
func (c *contestant) makeReady(tb testing.TB) {
	tb.Helper()
	g := NewWithT(tb)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.request.Namespace}}
	g.Expect(c.admin.Create(tb.Context(), namespace)).To(Succeed())
	shop := &quellv1alpha1.App{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.request.Namespace, Name: c.request.Name},
		Spec:       quellv1alpha1.AppSpec{Image: "registry.example/shop:1.0.0", Replicas: new(int32(replicas))},
	}
	g.Expect(c.admin.Create(tb.Context(), shop)).To(Succeed())
	tb.Cleanup(func() { g.Expect(c.admin.Delete(context.WithoutCancel(tb.Context()), shop)).To(Succeed()) })
	eventually(tb, "a Deployment", func(ctx context.Context) (bool, error) {
		err := rivals.Observe(ctx, c.admin, c.request.NamespacedName, rivals.Full(replicas))
		return err == nil, client.IgnoreNotFound(err)
	})
	eventually(tb, "an App with ready replicas", func(ctx context.Context) (bool, error) {
		err := c.admin.Get(ctx, c.request.NamespacedName, shop)
		return err == nil && shop.Status.ReadyReplicas != nil && *shop.Status.ReadyReplicas == replicas, err
	})
}

func eventually(tb testing.TB, what string, is wait.ConditionWithContextFunc) {
	tb.Helper()
	if err := wait.PollUntilContextTimeout(tb.Context(), pollEach, patience, true, is); err != nil {
		tb.Fatalf("wait for %s: %v", what, err)
	}
}

// reconcileOnce is one measured reconcile; what it asks for is counted.
func (c *contestant) reconcileOnce(ctx context.Context) error {
	_, err := c.Reconcile(context.WithValue(ctx, directly{}, true), c.request)
	return err
}

// settle reconciles until one sends nothing, and reports false when there is none.
func (c *contestant) settle(tb testing.TB) bool {
	tb.Helper()
	for range 100 {
		before := c.sent.Load()
		if err := c.reconcileOnce(tb.Context()); err != nil {
			continue // a conflict with the manager's own workers
		}
		if c.sent.Load() == before {
			return true
		}
	}
	return false
}

// served is what measured reconciles asked the API server for since a mark, by its own account.
func (c *contestant) served(tb testing.TB, since localcluster.Mark) []localcluster.Request {
	tb.Helper()
	requests, err := c.cluster.Requests(since, localcluster.ByUserAgent(c.agent+measured))
	NewWithT(tb).Expect(err).NotTo(HaveOccurred())
	return requests
}

func (c *contestant) mark(tb testing.TB) localcluster.Mark {
	tb.Helper()
	m, err := c.cluster.Mark()
	NewWithT(tb).Expect(err).NotTo(HaveOccurred())
	return m
}
