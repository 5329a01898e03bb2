package live_test

import (
	"context"
	"embed"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/hduolab/quell/controller/storm"
	"github.com/hduolab/quell/controller/storm/live"
	"github.com/hduolab/quell/test/localcluster"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

//go:embed testdata/*.yaml
var testdata embed.FS

// agent is the user agent, and user the identity, of every source.
const (
	agent = "quell-live"
	user  = "watcher"
)

var (
	cluster *localcluster.Cluster
	scheme  = runtime.NewScheme()
	admin   client.Client

	widgets    = resource("live.quell.dev", "widgets", "Widget", true)
	gears      = resource("live.quell.dev", "gears", "Gear", false)
	configMaps = resource("", "configmaps", "ConfigMap", true)
)

func resource(group, name, kind string, isNamespaced bool) live.Resource {
	gvr := schema.GroupVersionResource{Group: group, Version: "v1", Resource: name}
	return live.Resource{GroupVersionResource: gvr, Kind: kind, IsNamespaced: isNamespaced}
}

func TestLive(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	RegisterFailHandler(Fail)
	RunSpecs(t, "live watches of a real API server")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(time.Minute) // a limit against hanging, not a measure
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		Expect(add(scheme)).To(Succeed())
	}
	var err error
	cluster, err = localcluster.Start(ctx, localcluster.Options{ControlPlaneOnly: true, Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(cluster.Stop()).To(Succeed()) })
	admin, err = client.New(cluster.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	install(ctx, "widgets")
	install(ctx, "gears")
	grant(ctx, "watcher", rbacv1.PolicyRule{
		APIGroups: []string{"live.quell.dev", "apiextensions.k8s.io", ""}, Verbs: []string{"list", "watch"},
		Resources: []string{"widgets", "gears", "customresourcedefinitions", "configmaps"},
	})
}, NodeTimeout(20*time.Minute)) // the first start builds Kubernetes

// Whatever the specifications had the sources do, they asked for nothing to be changed.
var _ = AfterSuite(func() {
	if cluster == nil {
		return
	}
	requests, err := cluster.Requests(0, localcluster.ByUserAgent(agent))
	Expect(err).NotTo(HaveOccurred())
	Expect(requests).NotTo(BeEmpty())
	for _, r := range requests {
		Expect(r.Verb).To(BeElementOf("get", "list", "watch"), r.Path)
		Expect(r.Verb == "get" && r.Resource != "").To(BeFalse(), "reads an object: %s", r.Path)
	}
})

// install creates a CustomResourceDefinition and waits until it is served.
func install(ctx context.Context, name string) {
	GinkgoHelper()
	raw, err := testdata.ReadFile("testdata/" + name + ".yaml")
	Expect(err).NotTo(HaveOccurred())
	crd := &apiextensionsv1.CustomResourceDefinition{}
	Expect(yaml.UnmarshalStrict(raw, crd)).To(Succeed())
	Expect(admin.Create(ctx, crd)).To(Succeed())
	Expect(localcluster.WaitEstablished(ctx, cluster.Config(), crd.Name)).To(Succeed())
}

// grant lets the user of the sources do something.
func grant(ctx context.Context, name string, rule rbacv1.PolicyRule) {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{rule}}
	Expect(admin.Create(ctx, role)).To(Succeed())
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	binding.ResourceVersion = ""
	Expect(admin.Create(ctx, binding)).To(Succeed())
}

// clients are those of a source, and what they send.
type clients struct {
	wire      *wire
	metadata  metadata.Interface
	dynamic   dynamic.Interface
	discovery discovery.DiscoveryInterface
	transport *http.Client
}

func newClients() *clients {
	GinkgoHelper()
	cfg, err := cluster.User(user)
	Expect(err).NotTo(HaveOccurred())
	cfg.UserAgent, cfg.QPS = agent, -1
	c := &clients{wire: &wire{}}
	cfg.Wrap(c.wire.over)
	c.transport, err = rest.HTTPClientFor(cfg)
	Expect(err).NotTo(HaveOccurred())
	c.metadata, err = metadata.NewForConfigAndClient(metadata.ConfigFor(cfg), c.transport)
	Expect(err).NotTo(HaveOccurred())
	c.dynamic, err = dynamic.NewForConfigAndClient(cfg, c.transport)
	Expect(err).NotTo(HaveOccurred())
	c.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(cfg, c.transport)
	Expect(err).NotTo(HaveOccurred())
	return c
}

// running is a source that runs until the specification ends, or stop is called.
type running struct {
	*clients
	*live.Source
	stop func()
}

func run(ctx context.Context, o live.Options, resources ...live.Resource) *running {
	GinkgoHelper()
	c := newClients()
	o.Metadata, o.Dynamic = c.metadata, c.dynamic
	r := &running{clients: c, Source: live.New(o)}
	r.Watch(resources)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Run(ctx)
	}()
	r.stop = func() {
		cancel()
		<-ended
	}
	DeferCleanup(r.stop)
	return r
}

// watches waits until the watch of a resource is in a state, and gives it.
func (r *running) watches(what live.Resource, state live.State) live.Watch {
	GinkgoHelper()
	var found live.Watch
	Eventually(func(g Gomega) {
		g.Expect(r.Watches()).To(ContainElement(HaveField("Resource", what), &found))
		g.Expect(found.State).To(Equal(state), "%v", found.Err)
	}).Should(Succeed())
	return found
}

// writes are how many of a resource's were counted.
func (r *running) writes(of live.Resource) int64 {
	for _, rate := range r.Report().Resources {
		if rate.Key == of.GroupResource() {
			return rate.Writes
		}
	}
	return 0
}

// finding is what is known of an object, or nothing.
func (r *running) finding(name string) storm.Finding {
	for _, f := range r.Report().Findings {
		if f.Object.Name == name {
			return f
		}
	}
	return storm.Finding{}
}

func makeNamespace(ctx context.Context) string {
	GinkgoHelper()
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "live-"}}
	Expect(admin.Create(ctx, n)).To(Succeed())
	return n.Name
}

// makeObject creates an object of a custom resource.
func makeObject(ctx context.Context, r live.Resource, namespace, name string) *unstructured.Unstructured {
	GinkgoHelper()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(1)}}} // without content nobody owns any
	u.SetGroupVersionKind(r.GroupVersion().WithKind(r.Kind))
	u.SetNamespace(namespace)
	u.SetName(name)
	Expect(admin.Create(ctx, u, client.FieldOwner("user"))).To(Succeed())
	return u
}

// stamp writes a new time into the status.
func stamp(ctx context.Context, u *unstructured.Unstructured) error {
	patch := fmt.Appendf(nil, `{"status": {"at": %q}}`, time.Now().Format(time.RFC3339Nano))
	err := admin.Status().Patch(ctx, u, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("widget-operator"))
	if err != nil {
		return fmt.Errorf("stamp %s: %w", u.GetName(), err)
	}
	return nil
}
