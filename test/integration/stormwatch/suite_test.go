// Package stormwatch_test proves StormWatch on a full local cluster: the operator runs under the rights of its own ServiceAccount,
// real writers storm, and what the operator itself writes is counted at the API server.
//
// QUELL_STORM_WINDOW sets for how long the status is watched for writes while a storm goes on (default 10s).
package stormwatch_test

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"
	rbacv1 "k8s.io/api/rbac/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/hduolab/quell/controller/stormwatch"
	"github.com/hduolab/quell/test/localcluster"
)

const (
	// configDir is the repository's config folder, seen from this package's.
	configDir = "../../../config"
	// patience bounds a wait for what has to happen; it is no measure.
	patience  = 90 * time.Second
	pollEach  = 200 * time.Millisecond
	userAgent = "operator-under-test"
)

var (
	cluster *localcluster.Cluster
	scheme  = apiruntime.NewScheme()
	// admin may do everything; it stands for people.
	admin client.Client
	// manager is the operator under test.
	manager *operator
)

func TestStormWatch(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(pollEach)
	SetDefaultConsistentlyPollingInterval(pollEach)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "StormWatch on a real cluster")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	ctrl.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(stormwatch.AddToScheme(scheme)).To(Succeed())
	var err error
	cluster, err = localcluster.Start(ctx, localcluster.Options{Log: GinkgoWriter, Nodes: 1})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(cluster.Stop()).To(Succeed()) })
	admin, err = client.New(cluster.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	kubectl("apply", "-f", filepath.Join(configDir, "manager", "namespace.yaml"))
	kubectl("apply", "-f", filepath.Join(configDir, "rbac"))
	kubectl("apply", "-f", "testdata/widgets.yaml")
})

// operator runs the controller in this process as cmd/manager does, so that a test can stop and start it.
type operator struct {
	config *rest.Config
	clock  shifted
	cancel context.CancelFunc
	ended  chan error
	// before are the goroutines that there were when it started.
	before []gleak.Goroutine
}

// shifted is the real time and some more, so that a minute need not be waited for.
type shifted struct{ offset atomic.Int64 }

func (s *shifted) Now() time.Time                  { return time.Now().Add(time.Duration(s.offset.Load())) }
func (s *shifted) Since(t time.Time) time.Duration { return s.Now().Sub(t) }

func newOperator(ctx context.Context) *operator {
	GinkgoHelper()
	cfg, _, err := localcluster.ServiceAccountConfig(ctx, cluster.Config(), "quell-system", "quell-manager")
	Expect(err).NotTo(HaveOccurred())
	cfg.UserAgent, cfg.QPS = userAgent, -1 // as ctrl.GetConfig has it
	return &operator{config: cfg}
}

func (o *operator) start() {
	GinkgoHelper()
	o.before = gleak.Goroutines()
	skipNames := true // controller names must be unique in a process otherwise
	mgr, err := ctrl.NewManager(o.config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skipNames},
	})
	Expect(err).NotTo(HaveOccurred())
	clients, err := stormwatch.NewClients(mgr.GetConfig(), mgr.GetHTTPClient())
	Expect(err).NotTo(HaveOccurred())
	storms, err := stormwatch.New(stormwatch.Options{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Clients: clients, Events: mgr.GetEventRecorder("quell"), Metrics: metrics.Registry,
		Clock: &o.clock,
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(storms.SetupWithManager(mgr)).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	o.cancel, o.ended = cancel, ended
	go func() { ended <- mgr.Start(ctx); close(ended) }()
	Expect(mgr.GetCache().WaitForCacheSync(ctx)).To(BeTrue())
}

// stop ends the operator, and wants nothing left of it: of its watches at once, of all else soon. Connections are shared, and writers
// of the suite go on.
func (o *operator) stop() {
	GinkgoHelper()
	o.cancel()
	Expect(<-o.ended).NotTo(HaveOccurred())
	for _, goroutine := range gleak.Goroutines() {
		Expect(goroutine.Backtrace).NotTo(Or(ContainSubstring("quell/controller/storm/live."), ContainSubstring("quell/controller/stormwatch.")))
	}
	Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(o.before,
		gleak.IgnoringInBacktrace("net/http."), gleak.IgnoringInBacktrace("net/http2."), gleak.IgnoringInBacktrace("stormwatch_test.")))
}

func (o *operator) restart() {
	GinkgoHelper()
	o.stop()
	o.start()
}

// requests are those that the operator sent since a mark.
func (o *operator) requests(since localcluster.Mark, keep ...localcluster.Filter) []localcluster.Request {
	GinkgoHelper()
	requests, err := cluster.Requests(since, append(keep, localcluster.ByUserAgent(userAgent))...)
	Expect(err).NotTo(HaveOccurred())
	return requests
}

// statusWrites are the operator's writes to the status of StormWatches.
func (o *operator) statusWrites(since localcluster.Mark) []localcluster.Request {
	GinkgoHelper()
	return o.requests(since, func(r localcluster.Request) bool { return r.Resource == "stormwatches" && localcluster.Writes(r) })
}

func mark() localcluster.Mark {
	GinkgoHelper()
	m, err := cluster.Mark()
	Expect(err).NotTo(HaveOccurred())
	return m
}

func kubectl(args ...string) string {
	GinkgoHelper()
	out, err := kubectlCommand(args...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "kubectl %s: %s", strings.Join(args, " "), out)
	return string(out)
}

func kubectlCommand(args ...string) *exec.Cmd {
	return exec.Command(cluster.Kubectl(), append([]string{"--kubeconfig=" + cluster.Kubeconfig(), "--cache-dir=" + cluster.DataDir() + "/kubectl-cache"}, args...)...)
}

// window is how long the status is watched while a storm goes on.
func window() time.Duration {
	GinkgoHelper()
	value := os.Getenv("QUELL_STORM_WINDOW")
	if value == "" {
		return 10 * time.Second
	}
	d, err := time.ParseDuration(value)
	Expect(err).NotTo(HaveOccurred(), "QUELL_STORM_WINDOW")
	return d
}

// Of the rights that are there for this controller, each must have been used. Reads of one StormWatch follow a write that met
// none, and the event recorder patches an event that comes again: no spec can bring these about at will.
var _ = ReportAfterSuite("every right is used", func(report Report) {
	suite := report.SuiteConfig
	if len(suite.FocusStrings)+len(suite.SkipStrings)+len(suite.FocusFiles)+len(suite.SkipFiles) == 0 && report.SuiteSucceeded {
		Expect([]string{"get stormwatches", "patch events"}).To(ContainElements(unusedRights), "rights of config/rbac/role.yaml that no request needed")
	}
})

// unusedRights is found by AfterSuite, while the cluster and its audit log are still there.
var unusedRights []string

var _ = AfterSuite(func(ctx SpecContext) {
	if cluster == nil || manager == nil {
		return
	}
	var role rbacv1.ClusterRole
	Expect(admin.Get(ctx, client.ObjectKey{Name: "quell-manager"}, &role)).To(Succeed())
	ours := []string{"stormwatches", "stormwatches/status", "events", "customresourcedefinitions"}
	requests := manager.requests(0)
	for _, rule := range role.Rules {
		for _, resource := range rule.Resources {
			if len(rule.ResourceNames) > 0 || !slices.Contains(ours, resource) {
				continue
			}
			for _, verb := range rule.Verbs {
				if resource == "events" && verb == "list" {
					continue // the App controller's
				}
				if !slices.ContainsFunc(requests, func(r localcluster.Request) bool { return needs(r, resource, verb) }) {
					unusedRights = append(unusedRights, verb+" "+resource)
				}
			}
		}
	}
})

// needs reports whether a request that was allowed needs the right to a verb.
func needs(r localcluster.Request, resource, verb string) bool {
	name, sub, _ := strings.Cut(resource, "/")
	isVerb := r.Verb == verb || verb == "list" && r.Verb == "watch" // watches bring the first list along
	return r.Resource == name && r.Subresource == sub && isVerb && r.Code < http.StatusBadRequest
}
