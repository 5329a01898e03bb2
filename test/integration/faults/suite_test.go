// Package faults_test proves what the App operator does when the world around it breaks: from any starting state it reaches what
// the Apps ask for and then writes nothing; no crash, outage, lost answer, old cache, refusal or rival makes it lose or duplicate
// anything, or send more than a stated number of requests. It runs on a full local cluster under the rights of its own
// ServiceAccount. Each spec prints its figures.
//
// QUELL_SEED chooses what is drawn at random (default 1), QUELL_ROUNDS multiplies the random cases and,
// from 2 on, adds the specs that take long (default 1), QUELL_WATCH is how long a converged cluster must be quiet (default 3s).
package faults_test

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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
	// configDir is the repository's config folder, seen from this package's.
	configDir = "../../../config"
	// patience bounds a wait for what has to happen; it is no measure. A reflector or the work queue may back off for half a minute.
	patience = 2 * time.Minute
	pollEach = 100 * time.Millisecond
)

var (
	cluster *localcluster.Cluster
	scheme  = runtime.NewScheme()
	// admin may do everything; it stands for people.
	admin client.Client
	// account is how the operator under test reaches the API server.
	account *rest.Config
	// seed is that of all random choices.
	seed uint64
	// rounds multiplies the random cases.
	rounds int
	// watchTime is how long a converged cluster is watched.
	watchTime time.Duration
)

func TestFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(pollEach)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "App under faults")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	ctrl.SetLogger(zap.New(zap.WriteTo(GinkgoWriter)))
	readSettings()
	Expect(app.AddToScheme(scheme)).To(Succeed())
	var err error
	cluster, err = localcluster.Start(ctx, localcluster.Options{
		Log: GinkgoWriter,
		// What a namespace that goes, and a quota, has to do with this suite happens within seconds.
		ControllerManagerArgs: []string{"--namespace-sync-period=2s", "--resource-quota-sync-period=2s"},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(cluster.Stop()).To(Succeed()) })
	admin = clientAs("admin")
	installCRDs(ctx)
	startGateway()
	kubectl("apply", "-f", filepath.Join(configDir, "manager", "namespace.yaml"))
	kubectl("apply", "-f", filepath.Join(configDir, "rbac"))
	account, _, err = localcluster.ServiceAccountConfig(ctx, cluster.Config(), "quell-system", "quell-manager")
	Expect(err).NotTo(HaveOccurred())
})

func readSettings() {
	GinkgoHelper()
	var err error
	seed, rounds, watchTime = 1, 1, 3*time.Second
	if value := os.Getenv("QUELL_SEED"); value != "" {
		seed, err = strconv.ParseUint(value, 10, 64)
		Expect(err).NotTo(HaveOccurred(), "QUELL_SEED")
	}
	if value := os.Getenv("QUELL_ROUNDS"); value != "" {
		rounds, err = strconv.Atoi(value)
		Expect(err).NotTo(HaveOccurred(), "QUELL_ROUNDS")
	}
	if value := os.Getenv("QUELL_WATCH"); value != "" {
		watchTime, err = time.ParseDuration(value)
		Expect(err).NotTo(HaveOccurred(), "QUELL_WATCH")
	}
}

// takesLong skips a spec in a short run.
func takesLong(long bool) {
	if long && rounds == 1 {
		Skip("takes QUELL_ROUNDS=2 or more")
	}
}

// random is the source of one spec's random choices.
func random() *rand.Rand {
	GinkgoHelper()
	AddReportEntry("QUELL_SEED", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// installCRDs installs App, and of the Gateway API what an App can ask for.
func installCRDs(ctx context.Context) {
	GinkgoHelper()
	kubectl("apply", "--server-side", "-f", filepath.Join(configDir, "crd", "quell.dev_apps.yaml"))
	dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	Expect(err).NotTo(HaveOccurred())
	kubectl("apply", "--server-side", "-f", filepath.Join(strings.TrimSpace(string(dir)), "config", "crd", "standard", "gateway.networking.k8s.io_httproutes.yaml"))
	Expect(localcluster.WaitEstablished(ctx, cluster.Config(), "apps.quell.dev", "httproutes.gateway.networking.k8s.io")).To(Succeed())
}

// clientAs is a client of the administrator under a field manager's name.
func clientAs(manager string) client.Client {
	GinkgoHelper()
	config := cluster.Config()
	config.UserAgent = manager
	c, err := client.New(config, client.Options{Scheme: scheme, FieldOwner: manager})
	Expect(err).NotTo(HaveOccurred())
	return c
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
