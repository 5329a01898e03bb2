package live_test

import (
	"github.com/hduolab/quell/controller/storm"
	"github.com/hduolab/quell/controller/storm/live"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("Discover", func() {
	discover := func(ctx SpecContext, s live.Selector) ([]live.Resource, []live.Missing) {
		GinkgoHelper()
		c := newClients()
		found, missing, err := live.Discover(ctx, c.discovery, c.metadata, s)
		Expect(err).NotTo(HaveOccurred())
		return found, missing
	}

	It("finds everything that can be watched, once, but no known traffic", func(ctx SpecContext) {
		found, missing := discover(ctx, live.Selector{All: true})
		Expect(missing).To(BeEmpty())
		Expect(len(found)).To(BeNumerically(">", 30))
		Expect(found).To(ContainElements(widgets, gears, configMaps, resource("", "secrets", "Secret", true)))
		seen := map[schema.GroupResource]bool{}
		for _, r := range found {
			Expect(seen).NotTo(HaveKey(r.GroupResource()))
			seen[r.GroupResource()] = true
		}
		for _, known := range storm.KnownTraffic {
			Expect(seen).NotTo(HaveKey(known))
		}
		Expect(seen).NotTo(HaveKey(schema.GroupResource{Resource: "bindings"}), "cannot be watched")
		Expect(seen).NotTo(HaveKey(schema.GroupResource{Group: "live.quell.dev", Resource: "widgets/status"}))
	})

	It("finds custom resources", func(ctx SpecContext) {
		found, missing := discover(ctx, live.Selector{CustomResources: true})
		Expect(missing).To(BeEmpty())
		Expect(found).To(HaveExactElements(gears, widgets))
	})

	It("finds kinds by name and pattern, and tells which ones there are none of", func(ctx SpecContext) {
		found, missing := discover(ctx, live.Selector{Kinds: []schema.GroupKind{
			{Group: "live.quell.dev", Kind: live.Any}, {Group: live.Any, Kind: "ConfigMap"}, {Group: "coordination.k8s.io", Kind: "Lease"},
			{Group: "events.k8s.io", Kind: live.Any}, {Kind: "Nonsense"}, {Kind: "Binding"},
		}})
		Expect(found).To(HaveExactElements(configMaps, gears, resource("coordination.k8s.io", "leases", "Lease", true), widgets))
		Expect(missing).To(HaveExactElements(
			live.Missing{GroupKind: schema.GroupKind{Group: "events.k8s.io", Kind: live.Any}, IsServed: true},
			live.Missing{GroupKind: schema.GroupKind{Kind: "Nonsense"}},
			live.Missing{GroupKind: schema.GroupKind{Kind: "Binding"}, IsServed: true}))
	})

	It("gives the rest where a part of the API is away", func(ctx SpecContext) {
		away := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"group": "away.quell.dev", "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(10),
			"service": map[string]any{"namespace": "default", "name": "nobody"},
		}}}
		away.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
		away.SetName("v1.away.quell.dev")
		Expect(admin.Create(ctx, away)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, away)).To(Succeed()) })
		c := newClients()
		var found []live.Resource
		Eventually(func() error {
			var err error
			found, _, err = live.Discover(ctx, c.discovery, c.metadata, live.Selector{All: true})
			return err
		}).Should(MatchError(&discovery.ErrGroupDiscoveryFailed{}))
		Expect(found).To(ContainElements(widgets, configMaps))
	})

	It("says that CustomResourceDefinitions may not be listed", func(ctx SpecContext) {
		binding := &unstructured.Unstructured{}
		binding.SetGroupVersionKind(schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"})
		binding.SetName("watcher")
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(binding), binding)).To(Succeed())
		again := binding.DeepCopy()
		again.Object["metadata"] = map[string]any{"name": "watcher"}
		Expect(admin.Delete(ctx, binding)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(admin.Create(ctx, again)).To(Succeed())
			c := newClients()
			Eventually(func() error {
				_, err := c.metadata.Resource(widgets.GroupVersionResource).List(ctx, metav1.ListOptions{Limit: 1})
				return err
			}).Should(Succeed())
		})
		c := newClients()
		Eventually(func(g Gomega) {
			found, _, err := live.Discover(ctx, c.discovery, c.metadata, live.Selector{
				CustomResources: true, Kinds: []schema.GroupKind{{Kind: "ConfigMap"}},
			})
			g.Expect(err).To(MatchError(ContainSubstring("list customresourcedefinitions: ")))
			g.Expect(found).To(HaveExactElements(configMaps))
		}).Should(Succeed())
	})
})
