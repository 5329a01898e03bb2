package faults_test

import (
	"context"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/hduolab/quell/controller/app"
)

const operatorVersion = "v0.0.0-test"

// operator is one process of the operator: it runs as cmd/manager does, behind a wire of its own, and sees one namespace, so that
// specs and the cases of one spec do not meet.
type operator struct {
	*wire
	clock     *clock
	namespace string
	version   string
	// elect has it wait until it leads.
	elect  bool
	cancel context.CancelFunc
	ended  chan struct{}
}

func newOperator(namespace string) *operator {
	return &operator{wire: newWire(), clock: &clock{}, namespace: namespace, version: operatorVersion}
}

// startOperator starts one, and stops it when the spec ends.
func startOperator(namespace string) *operator {
	GinkgoHelper()
	o := newOperator(namespace)
	o.start()
	DeferCleanup(o.stop)
	return o
}

// start starts a process, a fresh one each time.
func (o *operator) start() {
	GinkgoHelper()
	cfg := rest.CopyConfig(account)
	cfg.UserAgent = "operator-under-test"
	cfg.Wrap(o.wrap)
	mgr, err := ctrl.NewManager(cfg, o.options())
	Expect(err).NotTo(HaveOccurred())
	apps, err := app.New(app.Options{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Events: mgr.GetEventRecorder("quell"), Version: o.version, Clock: o.clock,
	})
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	o.cancel, o.ended = cancel, make(chan struct{})
	Expect(apps.SetupWithManager(ctx, mgr, 4)).To(Succeed())
	go func() {
		defer close(o.ended)
		_ = mgr.Start(ctx) // a process that dies, or loses its lease, ends with an error
	}()
}

func (o *operator) options() ctrl.Options {
	caches := app.CacheOptions()
	caches.DefaultNamespaces = map[string]cache.Config{o.namespace: {}}
	options := ctrl.Options{
		Scheme:     scheme,
		Cache:      caches,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)}, // controller names must be unique in a process otherwise
	}
	if o.elect {
		options.LeaderElection, options.LeaderElectionID, options.LeaderElectionNamespace = true, "quell-manager", "quell-system"
		options.LeaseDuration, options.RenewDeadline, options.RetryPeriod = ptr.To(3*time.Second), ptr.To(2*time.Second), ptr.To(500*time.Millisecond)
		options.LeaderElectionReleaseOnCancel = true
	}
	return options
}

// stop ends the process in an orderly way; a second time it does nothing.
func (o *operator) stop() {
	o.cancel()
	<-o.ended
}

// crash ends the process without another request.
func (o *operator) crash() {
	o.die()
	o.cancel()
}

// restart ends the process as it may and starts a fresh one on an unbroken wire.
func (o *operator) restart() {
	GinkgoHelper()
	o.stop()
	o.wire = newWire()
	o.start()
}

// clock is the real one, off by what it has jumped.
type clock struct {
	mu     sync.Mutex
	offset time.Duration
}

// jump moves the clock, backwards if by is negative.
func (c *clock) jump(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += by
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Without the monotonic reading, which hides jumps from differences.
	return time.Now().Round(0).Add(c.offset)
}

func (c *clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
