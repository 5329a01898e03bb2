package e2e_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
)

var _ = Describe("The operator in the cluster", func() {
	var manager *appsv1.Deployment

	BeforeEach(func(ctx SpecContext) {
		manager = &appsv1.Deployment{}
		err := admin.Get(ctx, client.ObjectKey{Namespace: system, Name: managerName}, manager)
		if apierrors.IsNotFound(err) {
			Skip("the operator is no Deployment " + system + "/" + managerName + " in this cluster: it runs beside it")
		}
		Expect(err).NotTo(HaveOccurred())
	})

	It("runs where restricted Pod Security is enforced, not as root, and under rights of its own", func(ctx SpecContext) {
		pods := managerPods(ctx, Default, manager)
		Expect(pods).NotTo(BeEmpty())
		for _, p := range pods {
			Expect(p.Spec.ServiceAccountName).To(Equal(managerName))
			Expect(p.Spec.SecurityContext.RunAsNonRoot).To(HaveValue(BeTrue())) // the kubelet starts no container as root then
			Expect(p.Status.ContainerStatuses).To(HaveEach(HaveField("Ready", true)))
		}
		By("trying a Pod with privileges beside it")
		err := admin.Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: system, GenerateName: "quell-e2e-"},
			Spec:       corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{{Name: "c", Image: image}}},
		}, client.DryRunAll)
		Expect(err).To(MatchError(ContainSubstring(`violates PodSecurity "restricted:`)))
		By("asking what it may do")
		may := func(args ...string) string {
			return run(ctx, "", "kubectl", append([]string{"auth", "can-i", "--as=system:serviceaccount:" + system + ":" + managerName}, args...)...).out
		}
		Expect(may("patch", "apps.quell.dev", "--subresource=status")).To(Equal("yes\n"))
		for _, wish := range [][]string{{"create", "pods"}, {"delete", "nodes"}, {"update", "apps.quell.dev"}, {"create", "clusterroles"}, {"get", "secrets"}} {
			Expect(may(wish...)).To(HavePrefix("no"), strings.Join(wish, " "))
		}
	})

	It("answers its probes", func(ctx SpecContext) {
		for _, p := range managerPods(ctx, Default, manager) {
			for _, path := range []string{"healthz", "readyz"} {
				Expect(kubectl(ctx, "get", "--raw", "/api/v1/namespaces/"+system+"/pods/"+p.Name+":8081/proxy/"+path)).To(Equal("ok"))
			}
		}
	})

	It("serves its metrics through a Service to whoever may read them, and to nobody else", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		kubectl(ctx, "apply", "--server-side", "-f", filepath.Join(root, "config/prometheus/service.yaml"))
		url := forward(ctx, "service/quell-manager-metrics", 8443) + "/metrics"
		for _, name := range []string{"reader", "stranger"} {
			kubectl(ctx, "create", "serviceaccount", name, "-n", ns)
		}
		kubectl(ctx, "create", "clusterrolebinding", ns, "--clusterrole=quell-metrics-reader", "--serviceaccount="+ns+":reader")
		DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "delete", "clusterrolebinding", ns) })
		limit := manager.Spec.Template.Spec.Containers[0].Resources.Limits.Memory().Value()
		token := func(name string) string { return strings.TrimSpace(kubectl(ctx, "create", "token", name, "-n", ns)) }

		Expect(fetch(ctx, url, "")).To(HaveHTTPStatus(http.StatusUnauthorized))
		// controller-runtime answers 500 where the API server cannot make sense of a token.
		Expect(fetch(ctx, url, "no-such-token")).To(HaveHTTPStatus(http.StatusUnauthorized, http.StatusInternalServerError))
		Expect(fetch(ctx, url, token("stranger"))).To(HaveHTTPStatus(http.StatusForbidden))
		Eventually(ctx, func(g Gomega) {
			response := fetch(ctx, url, token("reader"))
			g.Expect(response).To(HaveHTTPStatus(http.StatusOK))
			g.Expect(response).To(HaveHTTPBody(And(
				ContainSubstring("\nrest_client_requests_total{"), ContainSubstring("\nleader_election_master_status{"),
				ContainSubstring(fmt.Sprintf("\ngo_gc_gomemlimit_bytes %v\n", float64(limit*9/10))), // or the kernel would end it first
			)))
		}).Should(Succeed())
	})

	It("goes on with another replica when its leader is killed, and then writes nothing", func(ctx SpecContext) {
		scaleManager(ctx, manager, 2)
		ns := newNamespace(ctx)
		shop, cart := createReady(ctx, newApp(ns, "shop")), createReady(ctx, newApp(ns, "cart"))
		awaitQuiet(ctx, ns)
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(cart), cart)).To(Succeed())
		atRest := cart.ResourceVersion
		former := leader(ctx, Default)
		pod, _, _ := strings.Cut(former, "_")

		kubectl(ctx, "delete", "pod", pod, "-n", system, "--grace-period=0", "--force")
		change(ctx, shop, `{"spec":{"replicas":2}}`)
		Eventually(ctx, func(g Gomega) {
			g.Expect(leader(ctx, g)).To(And(Not(BeEmpty()), Not(HavePrefix(pod+"_"))), "the leader was "+former)
		}).Should(Succeed())
		eventuallyReady(ctx, shop, 2)
		eventuallyRolledOut(ctx, manager, 2)
		expectQuietOperator(ctx)
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(cart), cart)).To(Succeed())
		Expect(cart.ResourceVersion).To(Equal(atRest), "the new leader wrote to an App at rest")
	})
})

// managerPods are the operator's Pods that are not on their way out.
func managerPods(ctx context.Context, g Gomega, manager *appsv1.Deployment) []corev1.Pod {
	GinkgoHelper()
	return podsOf(ctx, g, &quellv1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: manager.Namespace, Name: manager.Name}})
}

// scaleManager gives the operator so many replicas until the spec ends.
func scaleManager(ctx context.Context, manager *appsv1.Deployment, n int32) {
	GinkgoHelper()
	before := *manager.Spec.Replicas
	scale := func(ctx context.Context, n int32) {
		kubectl(ctx, "scale", "deployment/"+manager.Name, "-n", manager.Namespace, fmt.Sprintf("--replicas=%d", n))
		eventuallyRolledOut(ctx, manager, n)
	}
	DeferCleanup(func(ctx SpecContext) { scale(ctx, before) })
	scale(ctx, n)
}

func eventuallyRolledOut(ctx context.Context, manager *appsv1.Deployment, n int32) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		d := &appsv1.Deployment{}
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(manager), d)).To(Succeed())
		g.Expect(d.Status.ObservedGeneration).To(Equal(d.Generation))
		g.Expect([]int32{d.Status.Replicas, d.Status.ReadyReplicas, d.Status.UpdatedReplicas}).To(HaveEach(n))
		g.Expect(leader(ctx, g)).NotTo(BeEmpty())
	}).Should(Succeed())
}

// forward forwards a loopback port to the Pod behind a Service until the spec ends, and returns the URL.
func forward(ctx context.Context, to string, port int) string {
	GinkgoHelper()
	running, err := gexec.Start(command(context.WithoutCancel(ctx), "kubectl", "port-forward", "-n", system, "--address=127.0.0.1", to, fmt.Sprintf(":%d", port)), GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { running.Kill().Wait() })
	Eventually(ctx, running.Out).Should(gbytes.Say(`Forwarding from 127\.0\.0\.1:\d+ -> \d+\n`))
	address, _, _ := strings.Cut(strings.TrimPrefix(string(running.Out.Contents()), "Forwarding from "), " ")
	return "https://" + address
}

// fetch gets a page with a bearer token, or without one. The certificate is one that the operator makes for itself.
func fetch(ctx context.Context, url, token string) *http.Response {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	Expect(err).NotTo(HaveOccurred())
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	response, err := client.Do(request)
	Expect(err).NotTo(HaveOccurred())
	body, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.Body.Close()).To(Succeed())
	response.Body = io.NopCloser(strings.NewReader(string(body)))
	return response
}
