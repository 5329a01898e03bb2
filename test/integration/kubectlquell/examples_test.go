package kubectlquell_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/hduolab/quell/test/localcluster"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const docs = "../../../docs/kubectl-quell.md"

// examples are the command lines of the documentation, in order. What waits for Ctrl-C is ended after a while.
func examples() []string {
	GinkgoHelper()
	raw, err := os.ReadFile(docs)
	Expect(err).NotTo(HaveOccurred())
	var lines []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(raw), -1) {
		for line := range strings.SplitSeq(block[1], "\n") {
			if strings.HasPrefix(line, "kubectl ") {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

var _ = It("runs every example of the documentation", func(ctx SpecContext) {
	ns := namespace(ctx)
	dir := GinkgoT().TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	Expect(localcluster.WriteKubeconfig(kubeconfig, cluster.Config())).To(Succeed())
	in := func(script string) result {
		GinkgoHelper()
		return execute(ctx, dir, kubeconfig, "y\n", "bash", "-o", "pipefail", "-c", script)
	}
	Expect(in("kubectl config set-context --current --namespace " + ns).code).To(BeZero())
	Expect(os.WriteFile(filepath.Join(dir, "web.yaml"), []byte(web), 0o600)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(dir, "app.yaml"), []byte(`{apiVersion: quell.dev/v1alpha1, kind: App, metadata: {name: web}}`), 0o600)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(dir, "status.yaml"), []byte(gadget("status: {text: x}")), 0o600)).To(Succeed())
	script := fmt.Sprintf("cp '%s' audit.log && gzip -k audit.log", cluster.AuditLog())
	Expect(in(script).code).To(BeZero())
	kubectl(ctx, "apply", "-f", file(definition("App", "apps", "quell.dev", "v1alpha1")+"---\n"+definition("Widget", "widgets", "example.com", "v1beta1")))
	Expect(localcluster.WaitEstablished(ctx, cluster.Config(), "apps.quell.dev", "widgets.example.com")).To(Succeed())
	lines := examples()
	Expect(len(lines)).To(BeNumerically(">", 20))
	for _, line := range lines {
		By(line)
		prepare(ctx, ns)
		switch {
		case strings.Contains(line, " restore "): // of the file that the release before it has written
			backups, err := filepath.Glob(filepath.Join(dir, "quell-backup-*.yaml"))
			Expect(err).NotTo(HaveOccurred())
			for _, backup := range backups {
				Expect(os.Remove(backup)).To(Succeed())
			}
			line = "kubectl quell release deployment/web --manager ci --yes && kubectl quell restore quell-backup-*.yaml"
		case strings.Contains(line, "--watch"):
			line = "timeout --signal=INT 1 " + line
		}
		r := in(strings.NewReplacer("-n shop", "-n "+ns, "/var/log/kubernetes/", "", "--for 30s", "--for 1s").Replace(line))
		Expect(r.code).To(BeElementOf(0, 1, 124), "%s: %s%s", line, r.out, r.err)
	}
}, NodeTimeout(5*time.Minute))

var web = deployment("web", "nginx:1", 1, "x")

// prepare makes what the examples speak of, with something to find for each.
func prepare(ctx context.Context, ns string) {
	GinkgoHelper()
	d := mustApply(ctx, "ci", ns, web)
	lastApplied, err := json.Marshal(parse(web, ns))
	Expect(err).NotTo(HaveOccurred())
	for _, manager := range []string{"kubectl-client-side-apply", "helm", "flux", "old-tool"} {
		labels := map[string]any{"labels": map[string]any{manager: rand.Text()}}
		if manager == "kubectl-client-side-apply" {
			labels["annotations"] = map[string]any{"kubectl.kubernetes.io/last-applied-configuration": string(lastApplied)}
		}
		patch, err := json.Marshal(map[string]any{"metadata": labels})
		Expect(err).NotTo(HaveOccurred())
		update(ctx, manager, d, string(patch))
	}
	mustApply(ctx, "author", ns, gadget("spec: {text: x}"))
	for _, o := range []*unstructured.Unstructured{
		mustApply(ctx, "author", ns, `{apiVersion: quell.dev/v1alpha1, kind: App, metadata: {name: web}}`),
		mustApply(ctx, "author", ns, `{apiVersion: example.com/v1beta1, kind: Widget, metadata: {name: one}}`),
	} {
		update(ctx, "widget-operator", o, `{"spec":{"x":"`+rand.Text()+`"}}`)
		update(ctx, "my-operator", o, `{"status":{"x":"`+rand.Text()+`"}}`, "status")
	}
}

// definition is a CustomResourceDefinition of anything.
func definition(kind, plural, group, version string) string {
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[2]s.%[3]s}
spec:
  group: %[3]s
  names: {kind: %[1]s, plural: %[2]s}
  scope: Namespaced
  versions:
  - name: %[4]s
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, kind, plural, group, version)
}
