// Package library_test runs what README.md and docs/library.md show of the library, as they show it, against a real API server.
package library_test

import (
	"context"
	"fmt"
	"os/exec"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/test/localcluster"
)

const (
	namespace = metav1.NamespaceDefault
	// operator is the user agent of what is under test.
	operator = "operator"
	crds     = "../../../config/crd"
)

var (
	cluster *localcluster.Cluster
	scheme  = runtime.NewScheme()
	// admin is everybody but the operator.
	admin client.Client
)

func TestLibrary(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	RegisterFailHandler(Fail)
	RunSpecs(t, "what the documents show of the library")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(time.Minute) // a limit against hanging, not a measure
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	ctrl.SetLogger(GinkgoLogr)
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(quellv1alpha1.AddToScheme(scheme)).To(Succeed())
	var err error
	cluster, err = localcluster.Start(ctx, localcluster.Options{ControlPlaneOnly: true, Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(cluster.Stop()).To(Succeed()) })
	out, err := exec.Command(cluster.Kubectl(), "--kubeconfig", cluster.Kubeconfig(), "apply", "--server-side", "-f", crds).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	Expect(localcluster.WaitEstablished(ctx, cluster.Config(), "apps.quell.dev")).To(Succeed())
	admin, err = client.New(cluster.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
}, NodeTimeout(20*time.Minute)) // the first start builds Kubernetes

func operatorConfig() *rest.Config {
	cfg := cluster.Config()
	cfg.UserAgent = operator
	return cfg
}

// options let several managers live in one process, one after the other.
func options() ctrl.Options {
	return ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
	}
}

func newManager() ctrl.Manager {
	GinkgoHelper()
	mgr, err := ctrl.NewManager(operatorConfig(), options())
	Expect(err).NotTo(HaveOccurred())
	return mgr
}

// inBackground runs a manager until the spec ends.
func inBackground(run func(context.Context) error) {
	GinkgoHelper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	DeferCleanup(func() {
		stop()
		Eventually(done).Should(Receive(BeNil()))
	})
}

func mark() localcluster.Mark {
	GinkgoHelper()
	m, err := cluster.Mark()
	Expect(err).NotTo(HaveOccurred())
	return m
}

// writes are the operator's requests to change what belongs to an App, with their answers.
func writes(since localcluster.Mark, app client.Object) []string {
	GinkgoHelper()
	ofApp := func(r localcluster.Request) bool { return r.Name == app.GetName() }
	requests, err := cluster.Requests(since, localcluster.ByUserAgent(operator), localcluster.Writes, ofApp)
	Expect(err).NotTo(HaveOccurred())
	var list []string
	for _, r := range requests {
		list = append(list, fmt.Sprintf("%s %s/%s as %s: %d", r.Verb, r.Resource, r.Subresource, r.FieldManager, r.Code))
	}
	return list
}
