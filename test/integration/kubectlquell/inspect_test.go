package kubectlquell_test

import (
	"context"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

type owner struct{ Manager, Operation, Subresource, APIVersion string }

type blamed struct {
	Items []struct {
		Fields []struct {
			Path   string
			Value  any
			Owners []owner
		}
	}
}

// ownersOf maps paths to the words of their owners.
func (b blamed) ownersOf(path string) []string {
	var words []string
	for _, f := range b.Items[0].Fields {
		for _, o := range f.Owners {
			if f.Path == path {
				words = append(words, strings.TrimSuffix(o.Manager+" "+o.Operation+" "+o.Subresource, " "))
			}
		}
	}
	return words
}

var _ = Describe("blame and managers", func() {
	// rolledOut is a Deployment that several managers wrote and the controllers rolled out.
	rolledOut := func(ctx context.Context, ns string) *unstructured.Unstructured {
		web := mustApply(ctx, "ci", ns, deployment("web", "nginx:1", 1, "x"))
		mustApply(ctx, "helm", ns, deployment("web", "nginx:1", 1, "x"))
		update(ctx, "autoscaler", web, `{"spec":{"replicas":2}}`, "scale")
		update(ctx, "kubectl-edit", web, `{"metadata":{"labels":{"edited":"yes"}}}`)
		kubectl(ctx, "-n", ns, "rollout", "status", "deployment/web", "--timeout=60s")
		return web
	}

	It("names the owners that are known", func(ctx SpecContext) {
		ns := namespace(ctx)
		rolledOut(ctx, ns)
		var report blamed
		decode(expect(ctx, 0, "blame", "deployment/web", "-n", ns, "-o", "json"), &report)
		for path, want := range map[string][]string{
			`.spec.replicas`: {"autoscaler Update scale"},
			`.spec.template.spec.containers[name="web"].image`:                                           {"ci Apply", "helm Apply"},
			`.spec.template.spec.containers[name="web"].args`:                                            {"ci Apply", "helm Apply"},
			`.spec.template.spec.containers[name="web"].ports[containerPort=80,protocol="UDP"].protocol`: {"ci Apply", "helm Apply"},
			`.spec.template.spec.containers[name="web"].ports[containerPort=80,protocol="TCP"].protocol`: nil,
			`.metadata.labels.edited`:                                    {"kubectl-edit Update"},
			`.metadata.labels["app.kubernetes.io/name"]`:                 {"ci Apply", "helm Apply"},
			`.status.conditions[type="Available"].status`:                {"kube-controller-manager Update status"},
			`.metadata.annotations["deployment.kubernetes.io/revision"]`: {"kube-controller-manager Update status"},
			`.spec.strategy.type`:                                        nil,
		} {
			Expect(report.ownersOf(path)).To(ConsistOf(want), path)
		}
	})

	It("works as a plugin of kubectl, with files, and completes", func(ctx SpecContext) {
		ns := namespace(ctx)
		rolledOut(ctx, ns)
		plugin := kubectl(ctx, "quell", "blame", "deployment/web", "-n", ns, "--time", "none")
		Expect(plugin).To(ContainSubstring("|   replicas: 2"))
		saved := file(kubectl(ctx, "get", "deployment/web", "-n", ns, "-o", "yaml", "--show-managed-fields"))
		offline := expect(ctx, 0, "blame", "-f", saved, "--time", "none")
		Expect(strings.Split(offline, "\n")).To(HaveLen(len(strings.Split(plugin, "\n"))))
		done := execute(ctx, bin, cluster.Kubeconfig(), "", filepath.Join(bin, "kubectl_complete-quell"), "blame", "-n", ns, "deployment/w")
		Expect(done.out).To(ContainSubstring("deployment/web\n"))
	})

	It("exits with 2 for usage and 3 for what the cluster refuses", func(ctx SpecContext) {
		ns := namespace(ctx)
		expect(ctx, 2, "blame", "-n", ns)
		expect(ctx, 3, "blame", "deployment/nope", "-n", ns)
		expect(ctx, 3, "managers", "nosuchtype", "-n", ns)
		Expect(quell(ctx, "blame", "deployments", "-n", ns)).To(Equal(result{0, "", "no objects found\n"}))
	})

	It("summarises a selection and pairs its managers", func(ctx SpecContext) {
		ns := namespace(ctx)
		rolledOut(ctx, ns)
		mustApply(ctx, "ci", ns, deployment("other", "nginx:1", 1, "x"))
		table := expect(ctx, 0, "managers", "deployments,pods", "-n", ns)
		Expect(table).To(MatchRegexp(`(?m)^ci +Apply +2 `))
		Expect(table).To(MatchRegexp(`(?m)^kube-controller-manager +Update +status +2 .*Deployment$`))
		var pairs struct {
			Pairs []struct {
				Path     string
				One, Two owner
				Shared   int
				OnlyOne  int
				OnlyTwo  int
			}
		}
		decode(expect(ctx, 0, "managers", "deployments", "-n", ns, "--pairs", "-o", "json"), &pairs)
		Expect(pairs.Pairs).To(ContainElement(And(HaveField("Path", ".spec.template.spec.containers[*].image"), HaveField("Shared", 1))))
		Expect(pairs.Pairs).To(ContainElement(And(HaveField("Path", ".spec.replicas"), HaveField("One.Manager", "autoscaler"), HaveField("Two.Manager", "ci"),
			HaveField("OnlyOne", 1), HaveField("OnlyTwo", 0))))
	})
})

var _ = Describe("notes of managers and what mends them", func() {
	const manifest = `{apiVersion: v1, kind: ConfigMap, metadata: {name: cm}, data: {a: b}}`

	// mended runs the command that a note of this reason gives, and expects the note to be gone.
	mended := func(ctx context.Context, ns, name, reason string) {
		GinkgoHelper()
		type item struct {
			Notes []struct{ Reason, Fix string }
		}
		var report struct{ Items []item }
		decode(expect(ctx, 0, "managers", name, "-n", ns, "-o", "json"), &report)
		Expect(report.Items[0].Notes).To(ContainElement(HaveField("Reason", reason)))
		for _, n := range report.Items[0].Notes {
			if n.Reason == reason {
				words := strings.Fields(n.Fix)
				Expect(words[:2]).To(Equal([]string{"kubectl", "quell"}))
				expect(ctx, 0, append(words[2:], "--yes", "--backup", filepath.Join(GinkgoT().TempDir(), "backup.yaml"))...)
			}
		}
		report.Items = nil
		decode(expect(ctx, 0, "managers", name, "-n", ns, "-o", "json"), &report)
		Expect(report.Items[0].Notes).NotTo(ContainElement(HaveField("Reason", reason)))
	}

	It("fields from before the first apply", func(ctx SpecContext) {
		ns := namespace(ctx)
		cm := mustApply(ctx, "ci", ns, manifest)
		kubectl(ctx, "patch", "cm", "cm", "-n", ns, "--type=json", "-p", `[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`)
		Expect(expect(ctx, 0, "managers", "cm/cm", "-n", ns)).To(ContainSubstring("no managedFields"))
		mustApply(ctx, "ci", ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: cm}, data: {c: d}}`)
		mended(ctx, ns, "cm/cm", "BeforeFirstApply")
		Expect(get(ctx, cm).Object["data"]).To(HaveKey("a"))
	})

	It("client-side beside server-side apply", func(ctx SpecContext) {
		ns := namespace(ctx)
		path := file(manifest)
		kubectl(ctx, "apply", "-n", ns, "-f", path)
		mustApply(ctx, "kubectl", ns, manifest)
		mended(ctx, ns, "cm/cm", "StaleClientSideApply")
		left := mustApply(ctx, "kubectl", ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: cm}, data: {c: d}}`)
		Expect(left.Object["data"]).To(Equal(map[string]any{"c": "d"}))
	})

	It("updates beside applies of one manager, on the status", func(ctx SpecContext) {
		ns := namespace(ctx)
		g := mustApply(ctx, "op", ns, `{apiVersion: test.quell.dev/v1, kind: Gadget, metadata: {name: g}, spec: {text: x}}`)
		update(ctx, "op", g, `{"status":{"text":"x","number":1}}`, "status")
		mustApply(ctx, "op", ns, `{apiVersion: test.quell.dev/v1, kind: Gadget, metadata: {name: g}, status: {text: x}}`, "status")
		mended(ctx, ns, "gadget/g", "UpdateBesideApply")
		left := mustApply(ctx, "op", ns, `{apiVersion: test.quell.dev/v1, kind: Gadget, metadata: {name: g}, status: {text: x}}`, "status")
		Expect(left.Object["status"]).To(Equal(map[string]any{"text": "x"}))
	})

	It("an entry in a version that is not served any more", func(ctx SpecContext) {
		ns := namespace(ctx)
		crd := strings.ReplaceAll(strings.ReplaceAll(text("gadgets.yaml"), "gadget", "relic"), "Gadget", "Relic")
		kubectl(ctx, "create", "-f", file(crd))
		kubectl(ctx, "wait", "--for=condition=Established", "crd/relics.test.quell.dev", "--timeout=60s")
		const now = `{apiVersion: test.quell.dev/v1, kind: Relic, metadata: {name: r}, spec: {number: 1}}`
		Eventually(func() error {
			_, err := apply(ctx, "old-tool", ns, `{apiVersion: test.quell.dev/v1beta1, kind: Relic, metadata: {name: r}, spec: {text: x}}`, true)
			return err
		}).Should(Succeed())
		mustApply(ctx, "new-tool", ns, now)
		kubectl(ctx, "patch", "crd", "relics.test.quell.dev", "--type=json", "-p", `[{"op":"remove","path":"/spec/versions/1"}]`)
		Eventually(func() error { _, err := apply(ctx, "new-tool", ns, now, true); return err }).Should(HaveOccurred())
		Eventually(func() string {
			return expect(ctx, 0, "managers", "relic/r", "-n", ns)
		}).
			Should(ContainSubstring("not served any more"))
		mended(ctx, ns, "relics.test.quell.dev/r", "VersionNotServed")
		mustApply(ctx, "new-tool", ns, now)
	})
})
