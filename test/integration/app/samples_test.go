package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/test/localcluster"
)

var _ = Describe("The samples", func() {
	It("become what they say, and then cost nothing", func(ctx SpecContext) {
		kubectl("apply", "-k", filepath.Join(configDir, "configroll"))
		DeferCleanup(func() { kubectl("delete", "-k", filepath.Join(configDir, "configroll")) })
		start, namespaces := mark(), map[string]string{}
		for _, file := range sampleFiles("app*.yaml") {
			ns := newNamespace(ctx)
			namespaces[ns] = file
			applySample(func(args ...string) string { return kubectl(append([]string{"--namespace=" + ns}, args...)...) }, file)
		}
		for ns, file := range namespaces {
			By(file)
			expectSample(ctx, ns, file)
		}
		expectRest(ctx, start, func(r localcluster.Request) bool { return namespaces[r.Namespace] != "" })
	})

	It("are all in the Kustomization", func() {
		raw, err := os.ReadFile(filepath.Join(configDir, "samples", "Kustomization"))
		Expect(err).NotTo(HaveOccurred())
		var kustomization struct{ Resources []string }
		Expect(yaml.Unmarshal(raw, &kustomization)).To(Succeed())
		Expect(kustomization.Resources).To(ConsistOf(sampleFiles("*.yaml")))
		kubectl("kustomize", filepath.Join(configDir, "samples"))
	})
})

var _ = Describe("docs/app.md", func() {
	It("has examples that the API server accepts", func(ctx SpecContext) {
		raw, err := os.ReadFile("../../../docs/app.md")
		Expect(err).NotTo(HaveOccurred())
		blocks := strings.Split(string(raw), "```yaml\n")[1:]
		Expect(blocks).NotTo(BeEmpty())
		for _, block := range blocks {
			text, _, closed := strings.Cut(block, "```")
			Expect(closed).To(BeTrue(), block)
			u := &unstructured.Unstructured{}
			Expect(yaml.Unmarshal([]byte(text), &u.Object)).To(Succeed(), text)
			if u.GetKind() == "" { // part of a spec
				u = unstructuredApp("shop", text)
				if _, found, _ := unstructured.NestedString(u.Object, "spec", "image"); !found {
					Expect(unstructured.SetNestedField(u.Object, image, "spec", "image")).To(Succeed())
				}
			}
			u.SetNamespace("default")
			Expect(admin.Create(ctx, u, client.DryRunAll, client.FieldValidation("Strict"))).To(Succeed(), text)
		}
	})
})

func sampleFiles(pattern string) []string {
	GinkgoHelper()
	paths, err := filepath.Glob(filepath.Join(configDir, "samples", pattern))
	Expect(err).NotTo(HaveOccurred())
	Expect(paths).NotTo(BeEmpty())
	files := make([]string, len(paths))
	for i, path := range paths {
		files[i] = filepath.Base(path)
	}
	return files
}

// applySample applies a file of config/samples, twice, into the namespace that run uses.
func applySample(run func(args ...string) string, file string) {
	GinkgoHelper()
	raw, err := os.ReadFile(filepath.Join(configDir, "samples", file))
	Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(GinkgoT().TempDir(), file)
	Expect(os.WriteFile(path, []byte(withoutLine(string(raw), "  namespace: default")), 0o600)).To(Succeed())
	run("apply", "-f", path)
	Expect(run("apply", "-f", path)).To(ContainSubstring("unchanged"))
}

// expectSample wants every App of a sample Ready, but for one that asks for something else.
func expectSample(ctx SpecContext, namespace, file string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		var apps quellv1alpha1.AppList
		g.Expect(admin.List(ctx, &apps, client.InNamespace(namespace))).To(Succeed())
		g.Expect(apps.Items).NotTo(BeEmpty())
		for i := range apps.Items {
			a := &apps.Items[i]
			switch file {
			case "app_suspend.yaml":
				g.Expect(a.Status.Phase).To(Equal(quellv1alpha1.PhaseSuspended))
			case "app_httproute.yaml": // there is no Gateway, if there is the Gateway API at all
				g.Expect(messages(a)).To(ContainSubstring("HTTPRoute"))
			default:
				g.Expect(isReady(a)).To(BeTrue(), "%s: %s", a.Name, messages(a))
			}
		}
	}).Should(Succeed())
}

func messages(a *quellv1alpha1.App) string {
	var words []string
	for _, c := range a.Status.Conditions {
		words = append(words, c.Type+" "+string(c.Status)+" "+c.Reason+": "+c.Message)
	}
	return strings.Join(words, "\n")
}

// expectRest waits until the operator has written nothing for as long as a converged cluster is watched.
func expectRest(ctx SpecContext, since localcluster.Mark, keep localcluster.Filter) {
	GinkgoHelper()
	last, at := -1, time.Now()
	Eventually(ctx, func() time.Duration {
		if n := len(manager.requests(since, localcluster.Writes, localcluster.NotLeases, keep)); n != last {
			last, at = n, time.Now()
		}
		return time.Since(at)
	}).WithPolling(time.Second).Should(BeNumerically(">", watchTime()))
}
