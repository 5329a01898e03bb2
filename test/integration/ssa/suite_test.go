package ssa_test

import (
	"context"
	"embed"
	"encoding/json"
	"maps"
	"testing"
	"time"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

//go:embed testdata/*.yaml
var testdata embed.FS

// appCRD is the operator's own definition of App.
const appCRD = "../../../config/crd/quell.dev_apps.yaml"

var (
	cluster *localcluster.Cluster
	scheme  = runtime.NewScheme()
	// admin is everybody but the client under test; its requests are not counted.
	admin client.Client
	// subject is the client under test, wire what it sends.
	subject client.Client
	wire    = &traffic{}
	// converter has the merge rules of the kinds of testdata, as the API server publishes them.
	converter managedfields.TypeConverter
)

func TestSSA(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	RegisterFailHandler(Fail)
	RunSpecs(t, "ssa against a real API server")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(time.Minute) // a limit against hanging, not a measure
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, quellv1alpha1.AddToScheme} {
		Expect(add(scheme)).To(Succeed())
	}
	ctrl.SetLogger(GinkgoLogr) // the API server warns of what some specs do
	var err error
	cluster, err = localcluster.Start(ctx, localcluster.Options{ControlPlaneOnly: true, Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(cluster.Stop()).To(Succeed()) })
	admin = newClient(cluster.Config())
	for _, file := range []string{"testdata/things.yaml", "testdata/plains.yaml", "testdata/twins.yaml", "testdata/boxes.yaml"} {
		raw, err := testdata.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		install(ctx, raw)
	}
	install(ctx, read(appCRD))
	converter = typesOf(published(ctx))
	cfg := cluster.Config()
	cfg.UserAgent = "subject"
	cfg.Wrap(wire.over)
	subject = newClient(cfg)
}, NodeTimeout(20*time.Minute)) // the first start builds Kubernetes

func newClient(cfg *rest.Config) client.Client {
	GinkgoHelper()
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// install creates a CustomResourceDefinition and waits until it is served.
func install(ctx context.Context, raw []byte) {
	GinkgoHelper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	Expect(yaml.UnmarshalStrict(raw, crd)).To(Succeed())
	Expect(admin.Create(ctx, crd)).To(Succeed())
	Expect(localcluster.WaitEstablished(ctx, cluster.Config(), crd.Name)).To(Succeed())
}

// published are the schemas of testdata in the API server's OpenAPI documents, as soon as these have all kinds.
func published(ctx context.Context) map[string]*spec.Schema {
	GinkgoHelper()
	d, err := discovery.NewDiscoveryClientForConfig(cluster.Config())
	Expect(err).NotTo(HaveOccurred())
	schemas := map[string]*spec.Schema{}
	Eventually(func(g Gomega) {
		paths, err := d.OpenAPIV3().Paths()
		g.Expect(err).NotTo(HaveOccurred())
		for _, name := range []string{"apis/test.quell.dev/v1", "apis/test.quell.dev/v1beta1"} {
			g.Expect(paths).To(HaveKey(name))
			raw, err := paths[name].Schema(runtime.ContentTypeJSON)
			g.Expect(err).NotTo(HaveOccurred())
			var document spec3.OpenAPI
			g.Expect(json.Unmarshal(raw, &document)).To(Succeed())
			maps.Copy(schemas, document.Components.Schemas)
		}
		for _, kind := range []string{"v1.Thing", "v1.Plain", "v1.Twin", "v1beta1.Twin", "v1.Box"} {
			g.Expect(schemas).To(HaveKey("dev.quell.test." + kind))
		}
	}).WithContext(ctx).Should(Succeed())
	return schemas
}

func typesOf(schemas map[string]*spec.Schema) managedfields.TypeConverter {
	GinkgoHelper()
	made, err := managedfields.NewTypeConverter(schemas, false)
	Expect(err).NotTo(HaveOccurred())
	return made
}
