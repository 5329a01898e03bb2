// Package storm_test proves the storm detector on a full local cluster with thousands of objects: each program of test/storms is
// named right, live and from the audit log, nothing that happens in a cluster in good order is, and the counts of the audit log
// are those of the API server.
//
// QUELL_OBJECTS sets how many objects lie in the cluster (default 1000), QUELL_DEPLOYMENTS how many Deployments are rolled out
// (default 40) and QUELL_APPS how many Apps are created (default 60). A run by hand takes 5000, 200 and 500.
package storm_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/hduolab/quell/controller/app"
	"github.com/hduolab/quell/test/localcluster"
	"github.com/hduolab/quell/test/storms"
)

const (
	// configDir is the repository's config folder, seen from this package's.
	configDir = "../../../config"
	// patience bounds a wait for what has to happen; it is no measure.
	patience = 4 * time.Minute
	pollEach = 100 * time.Millisecond
)

var (
	cluster *localcluster.Cluster
	scheme  = runtime.NewScheme()
	// admin may do everything; it stands for people.
	admin client.Client
)

func TestStorm(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(pollEach)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "storm detector on a real cluster")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	ctrl.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))
	Expect(app.AddToScheme(scheme)).To(Succeed())
	policy, err := filepath.Abs(filepath.Join("testdata", "audit-policy.yaml"))
	Expect(err).NotTo(HaveOccurred())
	cluster, err = localcluster.Start(ctx, localcluster.Options{
		Log:           GinkgoWriter,
		APIServerArgs: []string{"--audit-policy-file=" + policy},
		// The autoscaler acts five times as fast as it usually does, on measurements of new Pods too.
		ControllerManagerArgs: []string{
			"--horizontal-pod-autoscaler-sync-period=3s", "--horizontal-pod-autoscaler-downscale-stabilization=1s",
			"--horizontal-pod-autoscaler-cpu-initialization-period=1s", "--horizontal-pod-autoscaler-initial-readiness-delay=1s",
		},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(cluster.Stop()).To(Succeed()) })
	admin = clientAs(cluster.Config(), "admin")
	kubectl("apply", "--server-side", "-f", filepath.Join(configDir, "crd"), "-f", filepath.Join("testdata", "podmetrics.yaml"))
	Expect(localcluster.WaitEstablished(ctx, cluster.Config(), "apps.quell.dev", "stormwatches.quell.dev", "pods.metrics.k8s.io")).To(Succeed())
	kubectl("apply", "--server-side", "-f", filepath.Join(configDir, "manager", "namespace.yaml"), "-f", filepath.Join(configDir, "rbac"))
	Expect(storms.Install(cluster.Config())).To(Succeed())
	fill(ctx, newNamespace(ctx), number("QUELL_OBJECTS", 1000))
}, NodeTimeout(20*time.Minute)) // the first start builds Kubernetes

// The one container runs in its order: the counts at the end are of all that came before.
var _ = Describe("The storm detector", Ordered, ContinueOnFailure, func() {
	Context("in a storm", stormSpecs)
	Context("in a cluster in good order", calmSpecs)
	Context("reading the audit log of all this", countSpecs)
})

// number is a setting of how many objects there are.
func number(variable string, otherwise int) int {
	GinkgoHelper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	Expect(err).NotTo(HaveOccurred(), variable)
	return n
}

func clientAs(config *rest.Config, userAgent string) client.Client {
	GinkgoHelper()
	config = rest.CopyConfig(config)
	config.UserAgent = userAgent
	c, err := client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// patienceFor bounds a wait for many objects.
func patienceFor(n int) time.Duration { return patience + time.Duration(n)*3*time.Second }

// newNamespace makes a namespace that stays: the cluster goes in the end.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "spec-"}}
	Expect(admin.Create(ctx, ns)).To(Succeed())
	return ns.Name
}

// fill makes ConfigMaps.
func fill(ctx context.Context, namespace string, n int) {
	GinkgoHelper()
	started := time.Now()
	each(n, func(i int) {
		Expect(admin.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("cm-%d", i)}, Data: map[string]string{"a": "b"},
		})).To(Succeed())
	})
	GinkgoWriter.Printf("%d objects made in %s\n", n, time.Since(started).Round(time.Millisecond))
}

// each calls f for each number below n, several at a time.
func each(n int, f func(int)) {
	GinkgoHelper()
	const workers = 16
	var running sync.WaitGroup
	for w := range workers {
		running.Go(func() {
			defer GinkgoRecover()
			for i := w; i < n; i += workers {
				f(i)
			}
		})
	}
	running.Wait()
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
