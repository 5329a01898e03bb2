// Package fieldmanagers_test is the session of docs/field-managers.md: it types each command of the page into one shell, in the
// page's order, on a real cluster with the built manager and the built plugin, and compares what comes with what the page shows.
//
//   - A block of console is a dialogue: a line after "$ " is typed, what stands below it is its whole output, of both streams. A
//     command that ends in a backslash goes on in the next line.
//   - A block of yaml that begins with "# NAME.yaml" is that file, for the commands after it. Other blocks of yaml are for tools
//     that are not here; they are decoded strictly, into the type where there is one.
//   - A command that only looks is typed again until it shows what the page shows, as the reader would: the operator, the
//     autoscaler and the event recorder take their time. All others are typed once.
//
// Two outputs are the same when they are so after these rules, and no others, see normal:
//
//   - times: a date with a time of day is TIME, an age such as 42s or 3m10s is AGE;
//   - columns: spaces in a row are one, and none end a line, since columns are as wide as the longest age.
//
// With -update the outputs are written into the page as they came, where they are not the same:
//
//	go test ./test/integration/fieldmanagers -update
package fieldmanagers_test

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/format"

	"github.com/hduolab/quell/test/localcluster"
)

// configDir is the repository's config folder, seen from this package's.
const configDir = "../../../config"

var (
	update = flag.Bool("update", false, "write the outputs of this run into the page")

	cluster *localcluster.Cluster
	// bin has kubectl and kubectl-quell in it.
	bin string
)

func TestFieldManagers(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	format.TruncatedDiff = false // whole outputs
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(2 * time.Minute) // a limit against hanging, not a measure
	SetDefaultEventuallyPollingInterval(200 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "docs/field-managers.md on a real cluster")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	bin = GinkgoT().TempDir()
	build(ctx, "kubectl-quell", "manager")
	var err error
	cluster, err = localcluster.Start(ctx, localcluster.Options{
		Log:                   GinkgoWriter,
		ControllerManagerArgs: []string{"--horizontal-pod-autoscaler-sync-period=1s"},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(cluster.Stop()).To(Succeed()) })
	Expect(os.Symlink(cluster.Kubectl(), filepath.Join(bin, "kubectl"))).To(Succeed())

	kubectl(ctx, "apply", "-f", filepath.Join(configDir, "crd"))
	Expect(localcluster.WaitEstablished(ctx, cluster.Config(), "apps.quell.dev", "stormwatches.quell.dev")).To(Succeed())
	kubectl(ctx, "apply", "-f", filepath.Join(configDir, "manager", "namespace.yaml"))
	kubectl(ctx, "apply", "-k", filepath.Join(configDir, "rbac"))
	startManager(ctx)
}, NodeTimeout(20*time.Minute)) // the first start builds Kubernetes

// build builds commands of the repository into bin.
func build(ctx context.Context, commands ...string) {
	GinkgoHelper()
	for _, name := range commands {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(bin, name), "github.com/hduolab/quell/cmd/"+name)
		out, err := cmd.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
	}
}

// startManager runs the operator under its own ServiceAccount.
func startManager(ctx context.Context) {
	GinkgoHelper()
	kubeconfig := filepath.Join(bin, "manager.kubeconfig")
	config, _, err := localcluster.ServiceAccountConfig(ctx, cluster.Config(), "quell-system", "quell-manager")
	Expect(err).NotTo(HaveOccurred())
	Expect(localcluster.WriteKubeconfig(kubeconfig, config)).To(Succeed())
	manager := exec.Command(filepath.Join(bin, "manager"), "--kubeconfig="+kubeconfig, "--health-probe-bind-address=0", "--metrics-bind-address=0")
	manager.Stderr = GinkgoWriter
	Expect(manager.Start()).To(Succeed())
	DeferCleanup(func() {
		Expect(manager.Process.Signal(os.Interrupt)).To(Succeed())
		Expect(manager.Wait()).To(Succeed())
	})
}

func kubectl(ctx context.Context, args ...string) {
	GinkgoHelper()
	out, err := exec.CommandContext(ctx, cluster.Kubectl(), append([]string{"--kubeconfig", cluster.Kubeconfig()}, args...)...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "kubectl %v: %s", args, out)
}
