package storm_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/hduolab/quell/controller/app"
	"github.com/hduolab/quell/test/localcluster"
)

// operatorAgent is the user agent of the App operator.
const operatorAgent = "operator-in-good-order"

// startOperator runs the App operator in this process as cmd/manager does, under the rights of its own ServiceAccount. Its requests
// are counted on the wire. Stop ends it once; it ends with the container otherwise.
func startOperator(ctx context.Context) (sent *atomic.Int64, stop func()) {
	GinkgoHelper()
	cfg, _, err := localcluster.ServiceAccountConfig(ctx, cluster.Config(), "quell-system", "quell-manager")
	Expect(err).NotTo(HaveOccurred())
	cfg.UserAgent = operatorAgent
	sent = &atomic.Int64{}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{next, sent} })
	skipNames := true // controller names must be unique in a process otherwise
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Cache: app.CacheOptions(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &skipNames},
	})
	Expect(err).NotTo(HaveOccurred())
	apps, err := app.New(app.Options{Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Events: mgr.GetEventRecorder("quell"), Version: "v0.0.0-test"})
	Expect(err).NotTo(HaveOccurred())
	running, cancel := context.WithCancel(context.Background())
	Expect(apps.SetupWithManager(running, mgr, 4)).To(Succeed())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(running) }()
	stop = sync.OnceFunc(func() {
		cancel()
		Expect(<-ended).NotTo(HaveOccurred())
	})
	DeferCleanup(stop)
	Expect(mgr.GetCache().WaitForCacheSync(ctx)).To(BeTrue())
	return sent, stop
}

// counting counts the requests that were answered.
type counting struct {
	next http.RoundTripper
	n    *atomic.Int64
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(r)
	if err == nil {
		c.n.Add(1)
	}
	return response, err
}
