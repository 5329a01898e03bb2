package kubectlquell_test

import (
	"context"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/hduolab/quell/test/localcluster"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

type owner struct{ Manager, Operation, Subresource, APIVersion string }

type blamed struct {
	Items []struct {
		Fields []struct {
			Path      string
			Value     any
			Owners    []owner
			Untracked bool
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
		Expect(quell(ctx, "managers", "deployments", "-n", ns)).To(Equal(result{0, "", "no objects found\n"}))
		alone := quell(ctx, "blame", "deployment/web", "--server", "https://127.0.0.1:1")
		Expect(alone.code).To(Equal(3))
		Expect(alone.err).To(And(MatchRegexp(`^error: .*connection refused\nis the cluster running`), HaveSuffix("\n")))
		Expect(strings.Count(alone.err, "\n")).To(Equal(2), "no log of the client's")
	})

	It("summarises a selection and pairs its managers", func(ctx SpecContext) {
		ns := namespace(ctx)
		rolledOut(ctx, ns)
		mustApply(ctx, "ci", ns, deployment("other", "nginx:1", 1, "x"))
		Eventually(ctx, func(g Gomega) { // the controller has yet to write to the second one
			table := quell(ctx, "managers", "deployments,pods", "-n", ns).out
			g.Expect(table).To(MatchRegexp(`(?m)^ci +Apply +2 `))
			g.Expect(table).To(MatchRegexp(`(?m)^kube-controller-manager +Update +status +2 .*Deployment$`))
		}).WithTimeout(30 * time.Second).Should(Succeed())
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
		Expect(localcluster.WaitEstablished(ctx, cluster.Config(), "relics.test.quell.dev")).To(Succeed())
		const now = `{apiVersion: test.quell.dev/v1, kind: Relic, metadata: {name: r}, spec: {number: 1}}`
		Eventually(func() error {
			_, err := apply(ctx, "old-tool", ns, `{apiVersion: test.quell.dev/v1beta1, kind: Relic, metadata: {name: r}, spec: {text: x}}`, true)
			return err
		}).Should(Succeed())
		mustApply(ctx, "new-tool", ns, now)
		another := func(s string) string { return strings.Replace(s, "name: r", "name: s", 1) }
		mustApply(ctx, "old-tool", ns, another(`{apiVersion: test.quell.dev/v1beta1, kind: Relic, metadata: {name: r}, spec: {text: x}}`))
		fixable := mustApply(ctx, "new-tool", ns, another(now))
		Expect(expect(ctx, 0, "managers", "relics", "-n", ns, "--fix")).To(HavePrefix("nothing to mend"))
		kubectl(ctx, "patch", "crd", "relics.test.quell.dev", "--type=json", "-p", `[{"op":"remove","path":"/spec/versions/1"}]`)
		Eventually(func() error { _, err := apply(ctx, "new-tool", ns, now, true); return err }).Should(HaveOccurred())
		Eventually(func() string {
			return expect(ctx, 0, "managers", "relic/r", "-n", ns)
		}).
			Should(ContainSubstring("not served any more"))
		mended(ctx, ns, "relics.test.quell.dev/r", "VersionNotServed")
		mustApply(ctx, "new-tool", ns, now)

		By("managers --fix over a selection")
		fix := []string{"managers", "relics", "-n", ns, "--fix", "--backup", filepath.Join(GinkgoT().TempDir(), "backup.yaml")}
		Expect(quell(ctx, fix...).code).To(Equal(2), "nobody answers")
		expect(ctx, 0, append(fix, "--dry-run=server")...)
		_, err := apply(ctx, "new-tool", ns, another(now), true)
		Expect(err).To(HaveOccurred(), "nothing is stored yet")
		answered := execute(ctx, bin, cluster.Kubeconfig(), "y", filepath.Join(bin, "kubectl-quell"), fix...)
		Expect(answered.code).To(BeZero(), answered.err)
		Expect(answered.out).To(And(MatchRegexp(`\.spec\.text +"old-tool" \(Apply\) +nobody`), ContainSubstring("relic.test.quell.dev/s: changed")))
		Expect(answered.out).NotTo(ContainSubstring("relic.test.quell.dev/r"))
		Expect(content(get(ctx, fixable))).To(Equal(content(fixable)))
		Expect(get(ctx, fixable).GetManagedFields()).To(ConsistOf(HaveField("Manager", "new-tool")))
		mustApply(ctx, "new-tool", ns, another(now))
		restored := quell(ctx, "restore", fix[len(fix)-1], "--yes")
		Expect(restored.code).To(Equal(3))
		Expect(restored.err).To(ContainSubstring("other owners"), "the API server drops an entry in a version that it does not serve")
	})
})

// probe is an apply of one value that is not the live one: its conflicts are the owners of that value.
func probe(live *unstructured.Unstructured, path fieldpath.Path) *unstructured.Unstructured {
	GinkgoHelper()
	u := object(live.GetAPIVersion(), live.GetKind(), live.GetNamespace(), live.GetName())
	value, found := fieldowners.Value(live.Object, path)
	Expect(found).To(BeTrue())
	u.Object = merge(u.Object, around(path, otherThan(value))).(map[string]any)
	return u
}

// around builds the maps, and the list items with their keys, that lead to a value.
func around(path fieldpath.Path, value any) any {
	GinkgoHelper()
	if len(path) == 0 {
		return value
	}
	switch below := around(path[1:], value); {
	case path[0].FieldName != nil:
		return map[string]any{*path[0].FieldName: below}
	case path[0].Key != nil:
		item := below.(map[string]any)
		for _, f := range *path[0].Key {
			if item[f.Name] == nil {
				item[f.Name] = f.Value.Unstructured()
			}
		}
		return []any{item}
	default:
		Expect(path[0].Value).NotTo(BeNil())
		return []any{(*path[0].Value).Unstructured()}
	}
}

func merge(a, b any) any {
	one, isMap := a.(map[string]any)
	two, areMaps := b.(map[string]any)
	if !isMap || !areMaps {
		return b
	}
	for key := range two {
		one[key] = merge(one[key], two[key])
	}
	return one
}

// otherThan is another value of the same type.
func otherThan(v any) any {
	switch v := v.(type) {
	case string:
		return v + "x"
	case bool:
		return !v
	case float64:
		return v + 1
	case []any:
		return append(slices.Clone(v), v...)
	case map[string]any:
		changed := map[string]any{}
		for key := range v {
			changed[key] = otherThan(v[key])
		}
		return changed
	}
	return v
}

// isKey reports whether a path is a part of a list item's key, which cannot be another one, or an item of a set.
func isKey(path fieldpath.Path) bool {
	last := path[len(path)-1]
	item := fieldpath.PathElement{}
	if len(path) > 1 {
		item = path[len(path)-2]
	}
	return last.Value != nil || item.Key != nil && slices.ContainsFunc(*item.Key, func(f value.Field) bool { return f.Name == *last.FieldName })
}

var _ = It("blames for each value those with whom an apply of another value conflicts", func(ctx SpecContext) {
	ns := namespace(ctx)
	web := mustApply(ctx, "ci", ns, deployment("web", "nginx:1", 1, "x"))
	mustApply(ctx, "helm", ns, deployment("web", "nginx:1", 1, "x"))
	update(ctx, "autoscaler", web, `{"spec":{"replicas":2}}`, "scale")
	update(ctx, "kubectl-edit", web, `{"metadata":{"labels":{"a.b/c":"yes"}},"spec":{"strategy":{"rollingUpdate":{"maxSurge":1}}}}`)
	kubectl(ctx, "-n", ns, "rollout", "status", "deployment/web", "--timeout=60s")
	mustApply(ctx, "mesh", ns, `{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {selector: {a: b}, ports: [{name: x, port: 53, protocol: UDP}, {name: z, port: 53}]}}`)
	g := mustApply(ctx, "author", ns, gadget(`spec: {text: x, tags: [a, b], order: [b, a], parts: [{name: p, value: w}], filled: {}}`))
	update(ctx, "op", g, `{"status":{"text":"x","parts":[{"name":"q"}]}}`, "status")
	values := 0
	for _, name := range []string{"deployment/web", "service/s", "gadget/g"} {
		values += compareBlame(ctx, ns, name)
	}
	Expect(values).To(BeNumerically(">", 50))
})

// compareBlame compares the owners that blame names with the API server's conflicts, and returns for how many values.
func compareBlame(ctx context.Context, ns, name string) (values int) {
	GinkgoHelper()
	live := parse(kubectl(ctx, "get", name, "-n", ns, "-o", "yaml", "--show-managed-fields"), ns)
	var report blamed
	decode(expect(ctx, 0, "blame", name, "-n", ns, "-o", "json"), &report)
	for _, f := range report.Items[0].Fields {
		path, err := fieldowners.ParsePath(f.Path)
		Expect(err).NotTo(HaveOccurred())
		if f.Untracked || isKey(path) || reflect.DeepEqual(f.Value, otherThan(f.Value)) { // no other value can be sent
			continue
		}
		u := probe(live, path)
		raw, err := u.MarshalJSON()
		Expect(err).NotTo(HaveOccurred())
		options := client.PatchOptions{FieldManager: "probe", DryRun: []string{metav1.DryRunAll}}
		if *path[0].FieldName == "status" {
			err = admin.SubResource("status").Patch(ctx, u, client.RawPatch(types.ApplyPatchType, raw), &client.SubResourcePatchOptions{PatchOptions: options})
		} else {
			err = admin.Patch(ctx, u, client.RawPatch(types.ApplyPatchType, raw), &options)
		}
		owners := map[string]bool{}
		for _, c := range fieldowners.Conflicts(err) {
			owners[strings.TrimSuffix(c.Manager+" "+string(c.Operation)+" "+c.Subresource, " ")] = true
		}
		Expect(report.ownersOf(f.Path)).To(ConsistOf(slices.Collect(maps.Keys(owners))), "%s of %s: %v", f.Path, name, err)
		values++
	}
	return values
}
