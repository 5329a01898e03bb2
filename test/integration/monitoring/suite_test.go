// Package monitoring_test reads the metrics of the built manager as config/prometheus has Prometheus do it, and checks every
// query of the alert rules and of the dashboard against them; and that docs/runbook.md gives the API server what it takes.
package monitoring_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hduolab/quell/test/localcluster"
)

// configDir is the repository's config folder, seen from this package's.
const configDir = "../../../config"

var (
	cluster *localcluster.Cluster
	admin   client.Client
	// endpoint is the address of the manager's metrics.
	endpoint string
)

func TestMonitoring(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(90 * time.Second) // a limit against hanging, not a measure
	SetDefaultEventuallyPollingInterval(200 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "config/prometheus on a real manager")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	policy := filepath.Join(GinkgoT().TempDir(), "audit-policy.yaml")
	Expect(os.WriteFile(policy, []byte(runbookYAML("kind: Policy")), 0o600)).To(Succeed())
	cluster, err = localcluster.Start(ctx, localcluster.Options{
		ControlPlaneOnly: true, Log: GinkgoWriter, APIServerArgs: []string{"--audit-policy-file=" + policy},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(cluster.Stop()).To(Succeed()) })
	admin, err = client.New(cluster.Config(), client.Options{Scheme: runtime.NewScheme()})
	Expect(err).NotTo(HaveOccurred())
	kubectl(ctx, "apply", "-f", filepath.Join(configDir, "crd"))
	Expect(localcluster.WaitEstablished(ctx, cluster.Config(), "apps.quell.dev", "stormwatches.quell.dev")).To(Succeed())
	kubectl(ctx, "apply", "-f", filepath.Join(configDir, "manager", "namespace.yaml"))
	kubectl(ctx, "apply", "-k", filepath.Join(configDir, "rbac"))
	startManager(ctx)
}, NodeTimeout(20*time.Minute)) // the first start builds Kubernetes

// startManager runs the built manager with the flags of config/manager that concern metrics, under its ServiceAccount.
func startManager(ctx context.Context) {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	program, kubeconfig := filepath.Join(dir, "manager"), filepath.Join(dir, "kubeconfig")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/hduolab/quell/cmd/manager").CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	config, _, err := localcluster.ServiceAccountConfig(ctx, cluster.Config(), "quell-system", "quell-manager")
	Expect(err).NotTo(HaveOccurred())
	Expect(localcluster.WriteKubeconfig(kubeconfig, config)).To(Succeed())
	endpoint = freeAddress()
	manager := exec.Command(program, "--kubeconfig="+kubeconfig, "--leader-elect", "--leader-election-namespace=quell-system",
		"--health-probe-bind-address=0", "--metrics-bind-address="+endpoint)
	manager.Stderr = GinkgoWriter
	Expect(manager.Start()).To(Succeed())
	DeferCleanup(func() {
		Expect(manager.Process.Signal(os.Interrupt)).To(Succeed())
		Expect(manager.Wait()).To(Succeed())
	})
}

// freeAddress is a loopback address that nobody listened on a moment ago.
func freeAddress() string {
	GinkgoHelper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer l.Close()
	return l.Addr().String()
}

func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	return kubectlWith(ctx, nil, args...)
}

func kubectlWith(ctx context.Context, stdin io.Reader, args ...string) string {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, cluster.Kubectl(), append([]string{"--kubeconfig", cluster.Kubeconfig()}, args...)...)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = stdin, &stderr
	out, err := cmd.Output()
	Expect(err).NotTo(HaveOccurred(), "kubectl %v: %s%s", args, out, stderr.String())
	return string(out)
}
