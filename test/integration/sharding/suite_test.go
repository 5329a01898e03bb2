// Package sharding_test proves that several shards of the operator share a cluster: each works on its own Apps alone, an App moves
// between them by its label without losing anything, and the death of one process concerns one shard, for as long as a Lease lasts. The
// shards are processes of cmd/manager under the rights of config/rbac and config/shard. Each spec prints its figures.
package sharding_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/hduolab/quell/controller/app"
	"github.com/hduolab/quell/test/localcluster"
)

const (
	configDir = "../../../config"
	// patience bounds a wait for what has to happen; it is no measure.
	patience = 2 * time.Minute
	// leaseNamespace is where the shards' Leases are.
	leaseNamespace = "quell-system"
)

var (
	cluster *localcluster.Cluster
	scheme  = runtime.NewScheme()
	// admin may do everything; it stands for people.
	admin client.Client
	// program is cmd/manager, kubeconfig how it reaches the API server.
	program, kubeconfig string
)

func TestSharding(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "Shards of the operator")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	ctrl.SetLogger(zap.New(zap.WriteTo(GinkgoWriter)))
	Expect(app.AddToScheme(scheme)).To(Succeed())
	var err error
	// Without controllers nobody but the shards writes to children: each Deployment stays as it is made.
	cluster, err = localcluster.Start(ctx, localcluster.Options{ControlPlaneOnly: true, Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(cluster.Stop()).To(Succeed()) })
	admin, err = client.New(cluster.Config(), client.Options{Scheme: scheme, FieldOwner: "kubectl-edit"})
	Expect(err).NotTo(HaveOccurred())
	for _, path := range []string{"crd", "manager/namespace.yaml", "rbac"} {
		kubectl("", "apply", "--server-side", "-f", filepath.Join(configDir, path))
	}
	Expect(localcluster.WaitEstablished(ctx, cluster.Config(), "apps.quell.dev", "stormwatches.quell.dev")).To(Succeed())
	buildManager(ctx)
})

// buildManager builds cmd/manager and gives it the rights of its ServiceAccount.
func buildManager(ctx context.Context) {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	program, kubeconfig = filepath.Join(dir, "manager"), filepath.Join(dir, "kubeconfig")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "../../../cmd/manager")
	out, err := build.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	var account *rest.Config
	Eventually(ctx, func() (err error) {
		account, _, err = localcluster.ServiceAccountConfig(ctx, cluster.Config(), "quell-system", "quell-manager")
		return err
	}).Should(Succeed())
	Expect(localcluster.WriteKubeconfig(kubeconfig, account)).To(Succeed())
}

// install gives a shard the rights that config/shard has for it, as docs/scale.md tells people to.
func install(shard string) {
	GinkgoHelper()
	rendered := kubectl("", "kustomize", filepath.Join(configDir, "shard"))
	kubectl(strings.ReplaceAll(rendered, "NAME", shard), "apply", "--server-side", "-f", "-")
}

func kubectl(input string, args ...string) string {
	GinkgoHelper()
	cmd := exec.Command(cluster.Kubectl(), append([]string{"--kubeconfig=" + cluster.Kubeconfig(), "--cache-dir=" + cluster.DataDir() + "/kubectl-cache"}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "kubectl %s: %s", strings.Join(args, " "), out)
	return string(out)
}

// process is one replica of a shard.
type process struct{ cmd *exec.Cmd }

// start starts a replica of a shard, which is killed when the spec, or the container of ordered specs, ends.
func start(shard string) *process {
	GinkgoHelper()
	args := []string{"--kubeconfig=" + kubeconfig, "--health-probe-bind-address=0", "--leader-elect", "--leader-election-namespace=" + leaseNamespace, "--zap-devel"}
	if shard != "" {
		args = append(args, "--shard="+shard)
	}
	p := &process{exec.Command(program, args...)}
	p.cmd.Stdout, p.cmd.Stderr = GinkgoWriter, GinkgoWriter
	Expect(p.cmd.Start()).To(Succeed())
	DeferCleanup(p.kill)
	return p
}

// kill ends the process as a crash would; its Lease stays. A second time it does nothing.
func (p *process) kill() {
	if p.cmd.ProcessState != nil {
		return
	}
	Expect(p.cmd.Process.Signal(os.Kill)).To(Succeed())
	_ = p.cmd.Wait() // it was killed
}

// tell puts a figure into the report.
func tell(name string, figure any) { AddReportEntry(name, figure, ReportEntryVisibilityAlways) }
