package differential_test

import (
	"context"
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/hduolab/quell/test/localcluster"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

var (
	cluster *localcluster.Cluster
	scheme  = runtime.NewScheme()
	// admin is everybody but the client under test; its requests are not counted.
	admin client.Client
	// subject is the client under test, wire what it sends.
	subject client.Client
	wire    = &traffic{}
	clock   = testclock.NewFakeClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
)

func TestDifferential(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	RegisterFailHandler(Fail)
	RunSpecs(t, "ssa's check against real applies")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(time.Minute) // a limit against hanging, not a measure
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, gatewayv1.Install} {
		Expect(add(scheme)).To(Succeed())
	}
	ctrl.SetLogger(logr.Discard())
	var err error
	cluster, err = localcluster.Start(ctx, localcluster.Options{ControlPlaneOnly: true, Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(cluster.Stop()).To(Succeed()) })
	cfg := cluster.Config()
	cfg.QPS, cfg.WarningHandler = -1, rest.NoWarnings{}
	admin = newClient(cfg)
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(wire.over)
	subject = newClient(cfg)
}, NodeTimeout(20*time.Minute)) // the first start builds Kubernetes

func newClient(cfg *rest.Config) client.Client {
	GinkgoHelper()
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// install creates CustomResourceDefinitions in one go and waits until they are served.
func install(ctx context.Context, crds ...*apiextensionsv1.CustomResourceDefinition) {
	GinkgoHelper()
	for _, crd := range crds {
		Expect(admin.Create(ctx, crd)).To(Succeed(), "%s", encoded(crd.Spec))
	}
	for _, crd := range crds {
		Expect(localcluster.WaitEstablished(ctx, cluster.Config(), crd.Name)).To(Succeed())
	}
}

// published makes a type converter from the API server's OpenAPI documents, as soon as they have these schemas.
func published(ctx context.Context, documents, names []string) managedfields.TypeConverter {
	GinkgoHelper()
	d, err := discovery.NewDiscoveryClientForConfig(cluster.Config())
	Expect(err).NotTo(HaveOccurred())
	schemas := map[string]*spec.Schema{}
	Eventually(func(g Gomega) {
		paths, err := d.OpenAPIV3().Paths()
		g.Expect(err).NotTo(HaveOccurred())
		for _, name := range documents {
			g.Expect(paths).To(HaveKey(name))
			raw, err := paths[name].Schema(runtime.ContentTypeJSON)
			g.Expect(err).NotTo(HaveOccurred())
			var document spec3.OpenAPI
			g.Expect(json.Unmarshal(raw, &document)).To(Succeed())
			maps.Copy(schemas, document.Components.Schemas)
		}
		for _, name := range names {
			g.Expect(schemas).To(HaveKey(name))
		}
	}).WithContext(ctx).Should(Succeed())
	made, err := managedfields.NewTypeConverter(schemas, false)
	Expect(err).NotTo(HaveOccurred())
	return made
}
