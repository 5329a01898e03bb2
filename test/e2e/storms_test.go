package e2e_test

import (
	"context"
	"encoding/json"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/test/storms"
)

// role lets the operator watch what the storm writes to.
const role = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: quell-e2e-storms, labels: {stormwatch.quell.dev/aggregate: "true"}}
rules:
- {apiGroups: [storms.example.com], resources: ["*"], verbs: [list, watch]}
`

// Two operators fight about one field, and both the plugin and a StormWatch are to name them.
var _ = Describe("A write storm", Ordered, func() {
	var (
		storm storms.Storm
		ns    string
	)

	BeforeAll(func(ctx SpecContext) {
		var err error
		storm, err = storms.Find("force-fight")
		Expect(err).NotTo(HaveOccurred())
		Expect(storms.Install(config)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(storms.Uninstall(ctx, config)).To(Succeed()) })
		ns = newNamespace(ctx)
		blow(storm, ns)
	})

	It("is named by kubectl quell storm", func(ctx SpecContext) {
		Eventually(ctx, func(g Gomega) {
			r := run(ctx, "", "kubectl", "quell", "storm", storm.Found.Resource.String(), "-n", ns, "--for", "10s", "--exit-code", "-o", "json")
			g.Expect(r.code).To(Equal(1), r.out+r.err)
			var report struct {
				Storms []struct {
					Object  struct{ Resource, Namespace, Name string }
					Verdict string
					Writers []struct{ Manager string }
					Fields  []struct{ Path string }
				}
			}
			g.Expect(json.Unmarshal([]byte(r.out), &report)).To(Succeed())
			g.Expect(report.Storms).To(HaveLen(1))
			s := report.Storms[0]
			g.Expect([]string{s.Object.Resource, s.Object.Namespace, s.Object.Name}).To(Equal([]string{storm.Found.Resource.Resource, ns, storm.Found.Objects[0]}))
			g.Expect(s.Verdict).To(BeEquivalentTo(storm.Found.Verdict))
			g.Expect(s.Writers).To(HaveLen(len(storm.Found.Managers)))
			for i := range s.Writers {
				g.Expect(storm.Found.Managers).To(ContainElement(s.Writers[i].Manager))
			}
			g.Expect(s.Fields).To(ContainElement(HaveField("Path", storm.Found.Field)))
		}).Should(Succeed())
	})

	It("is reported by a StormWatch", func(ctx SpecContext) {
		expect(ctx, 0, role, "apply", "--server-side", "-f", "-")
		DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "delete", "clusterrole", "quell-e2e-storms") })
		Eventually(ctx, func() string { // control plane controllers carry it over to the operator's role
			return run(ctx, "", "kubectl", "auth", "can-i", "watch", storm.Found.Resource.String(), "--as=system:serviceaccount:"+system+":"+managerName).out
		}).Should(Equal("yes\n"))
		w := &quellv1alpha1.StormWatch{ObjectMeta: metav1.ObjectMeta{GenerateName: "quell-e2e-"}, Spec: quellv1alpha1.StormWatchSpec{
			Kinds: []quellv1alpha1.StormWatchKind{{Group: storm.Found.Resource.Group, Kind: "Widget"}}, Namespaces: []string{ns},
		}}
		Expect(admin.Create(ctx, w)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, w)).To(Succeed()) })
		Eventually(ctx, func(g Gomega) {
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(w), w)).To(Succeed())
			g.Expect(w.Status.Storms).To(ConsistOf(And(HaveField("Resource", storm.Found.Resource.Resource), HaveField("Namespace", ns),
				HaveField("Name", storm.Found.Objects[0]), HaveField("Verdict", string(storm.Found.Verdict)),
				HaveField("Managers", ConsistOf(storm.Found.Managers)), HaveField("Fields", ContainElement(storm.Found.Field)))), "%+v", w.Status)
			g.Expect(meta.FindStatusCondition(w.Status.Conditions, quellv1alpha1.ConditionStormDetected)).To(HaveField("Status", metav1.ConditionTrue))
		}).Should(Succeed())
	})
})

// blow makes a storm until the specs are done.
func blow(storm storms.Storm, namespace string) {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		defer GinkgoRecover()
		Expect(storm.Run(ctx, config, storms.Options{Namespace: namespace})).To(Succeed())
	})
	DeferCleanup(func() { cancel(); ended.Wait() })
}
