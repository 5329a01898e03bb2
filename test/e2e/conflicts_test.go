package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
)

const (
	imagePath = `.spec.template.spec.containers[name="app"].image`
	theirs    = "registry.example.com/team/shop:theirs"
)

var _ = Describe("Somebody else's wish for a field of an App's Deployment", func() {
	It("is refused by the API server, told by the plugin, and with force taken back", func(ctx SpecContext) {
		shop := createReady(ctx, newApp(newNamespace(ctx), "shop"))
		manifest := filepath.Join(GinkgoT().TempDir(), "deployment.yaml")
		Expect(os.WriteFile(manifest, fmt.Appendf(nil,
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: shop}\nspec: {template: {spec: {containers: [{name: app, image: %q}]}}}\n", theirs), 0o600)).To(Succeed())
		apply := []string{"apply", "--server-side", "-n", shop.Namespace, "-f", manifest}

		By("applying it without force")
		r := run(ctx, "", "kubectl", apply...)
		Expect(r.code).To(Equal(1), r.out)
		Expect(r.err).To(And(ContainSubstring(`conflict with "quell-app"`), ContainSubstring(imagePath)))

		By("asking the plugin whom it would overrule, and who owns what")
		Expect(expect(ctx, 1, "", "quell", "conflicts", "-n", shop.Namespace, "-f", manifest)).To(
			And(ContainSubstring(imagePath), ContainSubstring(fmt.Sprintf("%q", theirs)), ContainSubstring(fmt.Sprintf("%q", image)), ContainSubstring("quell-app (Apply)")))
		Expect(kubectl(ctx, "quell", "blame", "deployment/shop", "-n", shop.Namespace)).To(And(
			MatchRegexp(`(?m)^quell-app +Apply +.*\| +- image: `), MatchRegexp(`(?m)^quell-app +Apply +.*\| +replicas: 1$`)))

		By("applying it with force")
		kubectl(ctx, append(apply, "--force-conflicts")...)
		Eventually(ctx, func(g Gomega) {
			g.Expect(deployment(ctx, g, shop).Spec.Template.Spec.Containers[0].Image).To(Equal(image))
			var events eventsv1.EventList
			g.Expect(admin.List(ctx, &events, client.InNamespace(shop.Namespace))).To(Succeed())
			g.Expect(events.Items).To(ContainElement(And(HaveField("Reason", "FieldTakenBack"), HaveField("Regarding.UID", shop.UID),
				HaveField("Note", And(ContainSubstring(imagePath), ContainSubstring(`"kubectl"`))))))
		}).Should(Succeed())
		eventuallyReady(ctx, shop, 1)
		awaitQuiet(ctx, shop.Namespace)
	})

	It("stands where conflictPolicy yields, and is told in the status", func(ctx SpecContext) {
		shop := createReady(ctx, newApp(newNamespace(ctx), "shop", func(s *quellv1alpha1.AppSpec) {
			s.ConflictPolicy = &quellv1alpha1.ConflictPolicy{Mode: quellv1alpha1.ConflictYield}
		}))
		kubectl(ctx, "scale", "deployment/shop", "-n", shop.Namespace, "--replicas=2")
		eventuallyReady(ctx, shop, 2)
		Eventually(ctx, func(g Gomega) {
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(shop), shop)).To(Succeed())
			g.Expect(shop.Status.Conflicts).To(ConsistOf(And(
				HaveField("Kind", "Deployment"), HaveField("Path", ".spec.replicas"), HaveField("Mode", quellv1alpha1.ConflictYield),
				HaveField("Manager", "kubectl"), HaveField("Operation", metav1.ManagedFieldsOperationUpdate), HaveField("Subresource", "scale"))))
			g.Expect(meta.FindStatusCondition(shop.Status.Conditions, quellv1alpha1.ConditionFieldConflict)).To(HaveField("Reason", "Yielded"))
		}).Should(Succeed())
		Expect(kubectl(ctx, "quell", "blame", "deployment/shop", "-n", shop.Namespace)).To(MatchRegexp(`(?m)^kubectl +Update/scale +.*\| +replicas: 2$`))
		awaitQuiet(ctx, shop.Namespace)
	})
})
