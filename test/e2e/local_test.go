package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"github.com/hduolab/quell/test/localcluster"
)

// startLocal starts a local cluster, installs what config/ says of the operator but its Deployment, and runs the built operator as a
// process with the rights of its ServiceAccount. Nodes are simulated there, so that the operator's own Pods could not work.
func startLocal(ctx context.Context) {
	GinkgoHelper()
	build(ctx, "manager")
	cluster, err := localcluster.Start(ctx, localcluster.Options{Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(cluster.Stop()).To(Succeed()) })
	config, kubeconfig = cluster.Config(), cluster.Kubeconfig()
	Expect(os.Symlink(cluster.Kubectl(), filepath.Join(bin, "kubectl"))).To(Succeed())

	kubectl(ctx, "apply", "--server-side", "-f", filepath.Join(root, "config/manager/namespace.yaml"))
	for _, dir := range installed {
		kubectl(ctx, "apply", "--server-side", "-k", filepath.Join(root, dir))
	}
	Expect(localcluster.WaitEstablished(ctx, config, "apps.quell.dev", "stormwatches.quell.dev")).To(Succeed())
	own, _, err := localcluster.ServiceAccountConfig(ctx, config, system, managerName)
	Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(bin, "manager.kubeconfig")
	Expect(localcluster.WriteKubeconfig(path, own)).To(Succeed())
	startManager(path)
}

func startManager(kubeconfig string) {
	GinkgoHelper()
	manager, err := gexec.Start(exec.Command(filepath.Join(bin, "manager"), "--kubeconfig="+kubeconfig, "--leader-elect",
		"--leader-election-namespace="+system, "--health-probe-bind-address=0"), GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		Expect(manager).NotTo(gexec.Exit(), "the operator has ended by itself")
		Eventually(manager.Terminate()).Should(gexec.Exit(0))
	})
}
