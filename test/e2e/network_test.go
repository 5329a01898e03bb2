package e2e_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
)

var _ = Describe("Traffic to an App", func() {
	BeforeEach(func() {
		if !serving {
			Skip("the Apps of this run answer nothing: QUELL_E2E_IMAGES does not name images of test/e2e/server")
		}
	})

	It("goes through its Service, by the name in its status", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		shop, caller := createReady(ctx, newApp(ns, "shop")), createReady(ctx, newApp(ns, "caller"))
		Expect(shop.Status.Endpoint).To(Equal("shop." + ns + ".svc:8080"))
		Eventually(ctx, func() string { return dial(ctx, caller, shop.Status.Endpoint) }).Should(Equal("connected\n"))
	})

	It("is let in as networkPolicy says", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		shop := createReady(ctx, newApp(ns, "shop"))
		friend, stranger := createReady(ctx, newApp(ns, "friend")), createReady(ctx, newApp(ns, "stranger"))
		requireEnforcement(ctx, shop, stranger)
		change(ctx, shop, `{"spec":{"networkPolicy":{"ingress":{"from":[{"app":"friend"}]}}}}`)
		Eventually(ctx, func() string { return dial(ctx, friend, shop.Status.Endpoint) }).Should(Equal("connected\n"))
		Eventually(ctx, func() string { return dial(ctx, stranger, shop.Status.Endpoint) }).ShouldNot(Equal("connected\n"))
	})
})

// dial tries a connection from a Pod of an App, which the API server reaches as a proxy.
func dial(ctx context.Context, from *quellv1alpha1.App, address string) string {
	GinkgoHelper()
	pods := podsOf(ctx, Default, from)
	Expect(pods).NotTo(BeEmpty())
	return run(ctx, "", "kubectl", "get", "--raw", "/api/v1/namespaces/"+from.Namespace+"/pods/"+pods[0].Name+":8080/proxy/dial?address="+address).out
}

// requireEnforcement skips the spec where the cluster's network lets traffic through that a policy forbids, for long enough to be sure.
func requireEnforcement(ctx context.Context, to, from *quellv1alpha1.App) {
	GinkgoHelper()
	Eventually(ctx, func() string { return dial(ctx, from, to.Status.Endpoint) }).Should(Equal("connected\n"))
	nobody := &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: to.Namespace, Name: "nobody"},
		Spec:       networkingv1.NetworkPolicySpec{PodSelector: *deployment(ctx, Default, to).Spec.Selector, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}},
	}
	Expect(admin.Create(ctx, nobody)).To(Succeed())
	const enough = 15 * time.Second
	for began := time.Now(); dial(ctx, from, to.Status.Endpoint) == "connected\n"; time.Sleep(pollEach) {
		if time.Since(began) > enough {
			Skip("this cluster's network does not enforce NetworkPolicies: traffic still passed " + enough.String() + " after one forbade it")
		}
	}
	Expect(admin.Delete(ctx, nobody, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
}
