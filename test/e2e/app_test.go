package e2e_test

import (
	"context"
	"path/filepath"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
)

// installed are the folders of config/ that an installation applies besides the Deployment.
var installed = []string{"config/crd", "config/rbac"}

var _ = Describe("An App", func() {
	It("becomes Ready with real Pods, and at rest nothing is written", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		shop, cart := newApp(ns, "shop", replicas(2)), newApp(ns, "cart")
		createReady(ctx, shop)
		createReady(ctx, cart)
		for _, p := range podsOf(ctx, Default, shop) {
			Expect(p.Status.Phase).To(Equal(corev1.PodRunning))
			Expect(p.Spec.Containers[0].Image).To(Equal(image))
		}
		Expect(kubectl(ctx, "get", "app", "-n", ns)).To(And(
			MatchRegexp(`(?m)^shop +2/2 +Running +\S+ +\S+$`), MatchRegexp(`(?m)^cart +1/1 +Running +\S+ +\S+$`)))
		expectQuiet(ctx, ns)
	})

	It("is scaled with kubectl scale", func(ctx SpecContext) {
		shop := createReady(ctx, newApp(newNamespace(ctx), "shop"))
		for _, n := range []int32{3, 0, 1} {
			kubectl(ctx, "scale", "app/shop", "-n", shop.Namespace, "--replicas", strconv.Itoa(int(n)))
			eventuallyReady(ctx, shop, n)
			Eventually(ctx, func(g Gomega) { g.Expect(podsOf(ctx, g, shop)).To(HaveLen(int(n))) }).Should(Succeed())
		}
	})

	It("rolls out another image and another environment", func(ctx SpecContext) {
		shop := createReady(ctx, newApp(newNamespace(ctx), "shop", replicas(2)))
		revision := shop.Status.Revision
		if nextImage != image {
			change(ctx, shop, `{"spec":{"image":"`+nextImage+`"}}`)
			eventuallyReady(ctx, shop, 2)
			Expect(shop.Status.RolledOutImage).To(Equal(nextImage))
			revision++
			Expect(shop.Status.Revision).To(Equal(revision))
		}
		change(ctx, shop, `{"spec":{"env":[{"name":"QUELL_E2E","value":"second"}]}}`)
		eventuallyReady(ctx, shop, 2)
		Expect(shop.Status.Revision).To(Equal(revision + 1))
		Eventually(ctx, func(g Gomega) {
			pods := podsOf(ctx, g, shop)
			g.Expect(pods).To(HaveLen(2))
			for _, p := range pods {
				g.Expect(p.Spec.Containers[0].Image).To(Equal(nextImage))
				g.Expect(p.Spec.Containers[0].Env).To(ContainElement(corev1.EnvVar{Name: "QUELL_E2E", Value: "second"}))
			}
		}).Should(Succeed())
	})

	It("heals what somebody else wrote, with one write each", func(ctx SpecContext) {
		shop := createReady(ctx, newApp(newNamespace(ctx), "shop"))
		awaitQuiet(ctx, shop.Namespace)
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(shop), shop)).To(Succeed())

		By("writing its status")
		versions, good := countVersions(ctx, shop), shop.Status
		kubectl(ctx, "patch", "app", "shop", "-n", shop.Namespace, "--subresource=status", "--type=merge", "-p", `{"status":{"phase":"Failed","readyReplicas":9}}`)
		Eventually(ctx, func(g Gomega) {
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(shop), shop)).To(Succeed())
			g.Expect(shop.Status).To(Equal(good))
		}).Should(Succeed())
		awaitQuiet(ctx, shop.Namespace)
		Expect(versions.Load()).To(BeEquivalentTo(2), "versions of the App: the foreign one and the healed one")

		By("writing its Deployment")
		before := deployment(ctx, Default, shop).Generation
		kubectl(ctx, "set", "env", "deployment/shop", "-n", shop.Namespace, "FOREIGN=yes") // a field that is not the App's
		kubectl(ctx, "scale", "deployment/shop", "-n", shop.Namespace, "--replicas=3")
		Eventually(ctx, func(g Gomega) { g.Expect(*deployment(ctx, g, shop).Spec.Replicas).To(BeEquivalentTo(1)) }).Should(Succeed())
		eventuallyReady(ctx, shop, 1)
		expectQuiet(ctx, shop.Namespace)
		d := deployment(ctx, Default, shop)
		Expect(d.Generation-before).To(BeEquivalentTo(3), "versions of the Deployment's spec: two foreign ones and the healed one")
		Expect(d.Spec.Template.Spec.Containers[0].Env).To(ContainElement(corev1.EnvVar{Name: "FOREIGN", Value: "yes"}))
	})

	It("takes its children along when it is deleted", func(ctx SpecContext) {
		shop := createReady(ctx, newApp(newNamespace(ctx), "shop"))
		selector := client.MatchingLabels(deployment(ctx, Default, shop).Spec.Selector.MatchLabels)
		kubectl(ctx, "delete", "app", "shop", "-n", shop.Namespace)
		Eventually(ctx, func(g Gomega) {
			for _, child := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}} {
				g.Expect(apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(shop), child))).To(BeTrue(), "%T", child)
			}
			var sets appsv1.ReplicaSetList
			g.Expect(admin.List(ctx, &sets, client.InNamespace(shop.Namespace), selector)).To(Succeed())
			g.Expect(sets.Items).To(BeEmpty())
			var pods corev1.PodList
			g.Expect(admin.List(ctx, &pods, client.InNamespace(shop.Namespace), selector)).To(Succeed())
			g.Expect(pods.Items).To(BeEmpty())
		}).Should(Succeed())
	})

	It("does not notice that everything is installed once more", func(ctx SpecContext) {
		shop := createReady(ctx, newApp(newNamespace(ctx), "shop"))
		awaitQuiet(ctx, shop.Namespace)
		before := installedVersions(ctx, shop)
		for _, dir := range installed {
			kubectl(ctx, "apply", "--server-side", "-k", filepath.Join(root, dir))
		}
		expectQuiet(ctx, shop.Namespace)
		Expect(installedVersions(ctx, shop)).To(Equal(before))
	})
})

// installedVersions are those of the App, its Deployment and the CustomResourceDefinitions.
func installedVersions(ctx context.Context, a *quellv1alpha1.App) []string {
	GinkgoHelper()
	const version = "-o=jsonpath={.metadata.resourceVersion}"
	return []string{
		kubectl(ctx, "get", "app", a.Name, "-n", a.Namespace, version), kubectl(ctx, "get", "deployment", a.Name, "-n", a.Namespace, version),
		kubectl(ctx, "get", "crd", "apps.quell.dev", version), kubectl(ctx, "get", "crd", "stormwatches.quell.dev", version),
	}
}
