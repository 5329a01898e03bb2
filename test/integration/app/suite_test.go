// Package app_test proves the App operator on a full local cluster: real controllers roll its Deployments out, it runs
// under the rights of its own ServiceAccount, and what it writes is counted at the API server.
//
// QUELL_WATCH sets how long a converged cluster is watched for writes (default 6s).
package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/hduolab/quell/controller/app"
	"github.com/hduolab/quell/test/localcluster"
	"github.com/hduolab/quell/test/quiescence"
)

const (
	// configDir is the repository's config folder, seen from this package's.
	configDir = "../../../config"
	// patience bounds a wait for what has to happen; it is no measure.
	patience = 90 * time.Second
	pollEach = 100 * time.Millisecond
)

var (
	cluster *localcluster.Cluster
	scheme  = runtime.NewScheme()
	// admin may do everything; it stands for people and for other controllers.
	admin client.Client
	// manager is the operator under test.
	manager *operator
)

func TestApp(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(pollEach)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "App on a real cluster")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	log := zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true))
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	Expect(app.AddToScheme(scheme)).To(Succeed())
	var err error
	cluster, err = localcluster.Start(ctx, localcluster.Options{
		Log: GinkgoWriter,
		// As OpenShift and hardened clusters do: an owner reference that blocks deletion needs a right on the owner's finalizers.
		// And as installers do: whether a Pod may be privileged is left to the Pod Security Standards.
		APIServerArgs: []string{"--enable-admission-plugins=OwnerReferencesPermissionEnforcement", "--allow-privileged=true"},
		// The autoscaler acts within seconds, on measurements of new Pods too.
		ControllerManagerArgs: []string{
			"--horizontal-pod-autoscaler-sync-period=1s", "--horizontal-pod-autoscaler-downscale-stabilization=1s",
			"--horizontal-pod-autoscaler-cpu-initialization-period=1s", "--horizontal-pod-autoscaler-initial-readiness-delay=1s",
		},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(cluster.Stop()).To(Succeed()) })
	admin = clientAs(cluster.Config(), "admin")

	kubectl("apply", "-f", filepath.Join(configDir, "crd"))
	Expect(localcluster.WaitEstablished(ctx, cluster.Config(), "apps.quell.dev")).To(Succeed())
	kubectl("apply", "-f", filepath.Join(configDir, "manager", "namespace.yaml"))
	kubectl("apply", "-f", filepath.Join(configDir, "rbac"))
	manager = newOperator(ctx)
	manager.start()
	DeferCleanup(manager.stop)
})

// unusedRights names the report entry in which each of the suite's processes tells what its operator had no use for.
const unusedRights = "unused rights"

// The operators must have used every right between them; one that no test needs is one too many.
var _ = ReportAfterSuite("every right is used", func(report Report) {
	suite := report.SuiteConfig
	partial := len(suite.FocusStrings)+len(suite.SkipStrings)+len(suite.FocusFiles)+len(suite.SkipFiles) > 0 || suite.LabelFilter != ""
	if partial || !report.SuiteSucceeded {
		return
	}
	unusedBy := map[string]int{}
	processes := 0
	for _, spec := range report.SpecReports.WithLeafNodeType(types.NodeTypeAfterSuite) {
		for _, entry := range spec.ReportEntries {
			if entry.Name == unusedRights {
				processes++
				for right := range strings.Lines(entry.StringRepresentation()) {
					unusedBy[strings.TrimSpace(right)]++
				}
			}
		}
	}
	Expect(processes).To(Equal(suite.ParallelTotal))
	for right, n := range unusedBy {
		if n == processes {
			Expect(unseen).To(ContainElement(right), "a right of config/rbac/role.yaml that no request needed")
		}
	}
})

var _ = AfterSuite(func(ctx SpecContext) {
	if cluster == nil {
		return
	}
	var role rbacv1.ClusterRole
	Expect(admin.Get(ctx, client.ObjectKey{Name: "quell-manager"}, &role)).To(Succeed())
	AddReportEntry(unusedRights, strings.Join(unused(role.Rules, manager.requests(0)), "\n"), ReportEntryVisibilityNever)

	// Whatever the specs left behind, the operator has nothing more to write about it.
	Expect(quiescence.Check(ctx, cluster.Config(), quiescence.Options{
		Kinds: []schema.GroupKind{
			{Group: "quell.dev", Kind: "App"}, {Group: "apps", Kind: "Deployment"}, {Kind: "Service"}, {Kind: "ServiceAccount"},
			{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}, {Group: "networking.k8s.io", Kind: quiescence.Any}, {Group: "policy", Kind: quiescence.Any},
		},
		Hold:   watchTime(),
		Ignore: func(w quiescence.Write) bool { return !strings.HasPrefix(w.Writer.Manager, "quell-") },
	})).To(Succeed())
})

func clientAs(config *rest.Config, userAgent string) client.Client {
	GinkgoHelper()
	config = rest.CopyConfig(config)
	config.UserAgent = userAgent
	c, err := client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// watchTime is how long a converged cluster is watched.
func watchTime() time.Duration {
	GinkgoHelper()
	value := os.Getenv("QUELL_WATCH")
	if value == "" {
		return 6 * time.Second
	}
	d, err := time.ParseDuration(value)
	Expect(err).NotTo(HaveOccurred(), "QUELL_WATCH")
	return d
}
