// Package upgrade_test installs Quell into a real cluster in each way that people have, upgrades it from an earlier release, and
// removes it again; what the operator writes meanwhile is counted at the API server.
//
// QUELL_UPGRADE_FROM names the revision to upgrade from. By default it is the newest tag before HEAD or, as long as there is none,
// the first revision whose App has all kinds of children.
//
// QUELL_WATCH sets how long a converged cluster is watched for writes (default 6s).
package upgrade_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hduolab/quell/controller/app"
	"github.com/hduolab/quell/test/localcluster"
)

const (
	// root is the repository, seen from this package's folder.
	root = "../../.."
	// system is the namespace of the operator, managerName the name of its Deployment, ServiceAccount and Lease.
	system      = "quell-system"
	managerName = "quell-manager"
)

var (
	cluster *localcluster.Cluster
	admin   client.Client
)

func TestUpgrade(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(8 * time.Minute) // a limit against hanging, not a measure
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "install, upgrade and uninstall on a real cluster")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	cluster, err = localcluster.Start(ctx, localcluster.Options{Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(cluster.Stop()).To(Succeed()) })
	scheme := runtime.NewScheme()
	Expect(errors.Join(app.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme))).To(Succeed())
	admin, err = client.New(cluster.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
}, NodeTimeout(20*time.Minute)) // the first start builds Kubernetes

// run runs a program in a folder and returns what it prints, both streams: a warning of the API server is seen too.
func run(ctx context.Context, dir, name string, args ...string) string {
	GinkgoHelper()
	out, err := try(ctx, dir, name, args...)
	Expect(err).NotTo(HaveOccurred(), "%s %s: %s", name, strings.Join(args, " "), out)
	return out
}

func try(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	return run(ctx, root, cluster.Kubectl(), args...)
}

// buildManager builds the manager of a source tree, stamped with a version.
func buildManager(ctx context.Context, tree, version string) string {
	GinkgoHelper()
	program := filepath.Join(GinkgoT().TempDir(), "manager")
	run(ctx, tree, "go", "build", "-ldflags", "-X main.version="+version, "-o", program, "./cmd/manager")
	return program
}

// manager is an operator that runs as a process.
type manager struct {
	session *gexec.Session
	metrics string // their address
}

// startManager runs a program with the rights of the operator's ServiceAccount. It is killed at the end of the suite or container.
func startManager(ctx context.Context, program string) *manager {
	GinkgoHelper()
	config, _, err := localcluster.ServiceAccountConfig(ctx, cluster.Config(), system, managerName)
	Expect(err).NotTo(HaveOccurred())
	kubeconfig := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(localcluster.WriteKubeconfig(kubeconfig, config)).To(Succeed())
	m := &manager{metrics: freeAddress()}
	m.session, err = gexec.Start(exec.Command(program, "--kubeconfig="+kubeconfig, "--leader-elect", "--leader-election-namespace="+system,
		"--health-probe-bind-address=0", "--metrics-bind-address="+m.metrics, "--metrics-insecure"), GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { m.session.Kill().Wait() }) // of no effect after stop
	return m
}

func (m *manager) stop(ctx context.Context) {
	GinkgoHelper()
	Expect(m.session).NotTo(gexec.Exit(), "the operator has ended by itself")
	Eventually(ctx, m.session.Terminate()).Should(gexec.Exit(0))
}

// awaitReconciled waits until the operator has worked on this many Apps and has no more to do.
func (m *manager) awaitReconciled(ctx context.Context, apps int) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		response, err := http.Get("http://" + m.metrics + "/metrics")
		g.Expect(err).NotTo(HaveOccurred())
		defer response.Body.Close()
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(response.Body)
		g.Expect(err).NotTo(HaveOccurred())
		total := map[string]float64{} // of the controller of Apps
		for name, family := range families {
			for _, metric := range family.GetMetric() {
				for _, label := range metric.GetLabel() {
					if label.GetValue() == "app" {
						total[name] += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
					}
				}
			}
		}
		g.Expect(total["controller_runtime_reconcile_total"]).To(BeNumerically(">=", apps))
		g.Expect(total["controller_runtime_active_workers"]).To(BeZero())
		g.Expect(total["workqueue_depth"]).To(BeZero())
	}).Should(Succeed())
}

// freeAddress is a loopback address that nobody listened on a moment ago.
func freeAddress() string {
	GinkgoHelper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer l.Close()
	return l.Addr().String()
}
