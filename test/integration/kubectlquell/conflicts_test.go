package kubectlquell_test

import (
	"context"
	"slices"
	"strings"

	"github.com/hduolab/quell/controller/fieldowners"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// reportedConflicts are the conflicts that the command reports, each as the API server spells the path, with the owner.
func reportedConflicts(report string) []string {
	GinkgoHelper()
	var parsed struct {
		Items []struct {
			Conflicts []struct {
				Path  string
				Owner owner
			}
		}
	}
	decode(report, &parsed)
	found := []string{}
	for _, i := range parsed.Items {
		for _, c := range i.Conflicts {
			path, err := fieldowners.ParsePath(c.Path)
			Expect(err).NotTo(HaveOccurred())
			found = append(found, strings.Join([]string{path.String(), c.Owner.Manager, c.Owner.Operation, c.Owner.Subresource}, " "))
		}
	}
	return found
}

// realConflicts are those that the API server gives for the apply itself.
func realConflicts(ctx context.Context, manager, ns, manifest string, subresource ...string) []string {
	GinkgoHelper()
	_, err := apply(ctx, manager, ns, manifest, false, subresource...)
	found := []string{}
	for _, c := range fieldowners.Conflicts(err) {
		found = append(found, strings.Join([]string{c.Path, c.Manager, string(c.Operation), c.Subresource}, " "))
	}
	if len(found) == 0 {
		Expect(err).NotTo(HaveOccurred())
	}
	return found
}

var _ = Describe("conflicts", func() {
	const gadget = `{apiVersion: test.quell.dev/v1, kind: Gadget, metadata: {name: g, annotations: {"a.b/c": one}}, spec: {
		text: one, tags: [x, v], order: [a, b], parts: [{name: p, value: one}, {name: q, value: one}], embedded: {}}}`
	status := func(text string) string {
		return `{apiVersion: test.quell.dev/v1, kind: Gadget, metadata: {name: g}, status: {text: ` + text + `, number: 1}}`
	}

	It("finds exactly those of the real apply, with and without the cluster", func(ctx SpecContext) {
		ns := namespace(ctx)
		web := mustApply(ctx, "ci", ns, deployment("web", "nginx:1", 1, "x"))
		mustApply(ctx, "helm", ns, deployment("web", "nginx:1", 1, "x"))
		update(ctx, "autoscaler", web, `{"spec":{"replicas":3}}`, "scale")
		update(ctx, "kubectl-edit", web, `{"spec":{"revisionHistoryLimit":3}}`)
		g := mustApply(ctx, "author", ns, gadget)
		update(ctx, "op", g, `{"status":{"text":"one","number":1}}`, "status")
		svc := mustApply(ctx, "mesh", ns, `{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {selector: {a: b}, ports: [{name: x, port: 53, protocol: UDP}]}}`)
		Expect(svc.GetName()).To(Equal("s"))
		const twice = `env: [{name: E, value: a}, {name: E, value: b}, {name: F, value: c}]`
		kubectl(ctx, "create", "-n", ns, "-f", file(strings.Replace(deployment("dup", "nginx:1", 1, "x"), "env: [{name: E, value: x}]", twice, 1)))
		schema := file(kubectl(ctx, "get", "--raw", "/openapi/v3/apis/test.quell.dev/v1"))
		for name, manifest := range map[string]string{
			"nothing":                   deployment("web", "nginx:1", 3, "x"),
			"many fields":               deployment("web", "nginx:2", 7, "v"),
			"an update":                 `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {revisionHistoryLimit: 5, selector: {matchLabels: {app: web}}}}`,
			"an atomic map":             `{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {selector: {c: d}}}`,
			"an item of a map list":     `{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{name: v, port: 53, protocol: UDP}, {name: z, port: 1}]}}`,
			"a custom resource":         strings.ReplaceAll(gadget, "one", "two"),
			"order of an atomic list":   `{apiVersion: test.quell.dev/v1, kind: Gadget, metadata: {name: g}, spec: {order: [b, a], tags: [z]}}`,
			"an item beside duplicates": `{apiVersion: apps/v1, kind: Deployment, metadata: {name: dup}, spec: {template: {spec: {containers: [{name: web, env: [{name: F, value: d}]}]}}}}`,
			"an object to come":         `{apiVersion: v1, kind: ConfigMap, metadata: {name: new}, data: {a: b}}`,
		} {
			manager := "me"
			path := file(manifest)
			r := quell(ctx, "conflicts", "-f", path, "-n", ns, "--field-manager", manager, "-o", "json")
			live, offline := "", []string{"--offline"}
			u := parse(manifest, ns)
			if u.GetKind() == "Gadget" {
				offline = append(offline, "--schema", schema)
			}
			if u.GetName() != "new" {
				live = file(kubectl(ctx, "get", "-n", ns, strings.ToLower(u.GetKind())+"/"+u.GetName(), "-o", "yaml", "--show-managed-fields"))
			}
			want := []string{}
			if name != "an object to come" {
				want = realConflicts(ctx, manager, ns, manifest)
			}
			Expect(reportedConflicts(r.out)).To(ConsistOf(want), name+r.err)
			Expect(r.code).To(Equal(min(len(want), 1)), name)
			if live != "" {
				r := quell(ctx, append([]string{"conflicts", "-f", path, "--live", live, "--field-manager", manager, "-o", "json"}, offline...)...)
				Expect(reportedConflicts(r.out)).To(ConsistOf(want), name+" offline "+r.err)
			}
		}
		Expect(reportedConflicts(quell(ctx, "conflicts", "-f", file(status("two")), "-n", ns, "--field-manager", "me", "--subresource", "status", "-o", "json").out)).
			To(ConsistOf(realConflicts(ctx, "me", ns, status("two"), "status")))
	})

	It("shows both values and what each owner loses, for several documents", func(ctx SpecContext) {
		ns := namespace(ctx)
		web := mustApply(ctx, "ci", ns, deployment("web", "nginx:1", 1, "x"))
		mustApply(ctx, "author", ns, gadget)
		both := file(deployment("web", "nginx:2", 1, "x") + "\n---\n" + strings.ReplaceAll(gadget, "text: one", "text: two"))
		table := expect(ctx, 1, "conflicts", "-f", both, "-n", ns, "--field-manager", "me", "--force-conflicts", "--time", "none")
		Expect(table).To(MatchRegexp(`deployment\.apps/web +\.spec\.template\.spec\.containers\[name="web"\]\.image +"nginx:2" +"nginx:1" +ci \(Apply\)`))
		Expect(table).To(MatchRegexp(`gadget\.test\.quell\.dev/g +\.spec\.text +"two" +"one" +author \(Apply\)`))
		Expect(table).To(MatchRegexp(`(?s)with force, these owners lose:.*gadget\.test\.quell\.dev/g +\.spec\.text +author \(Apply\)`))
		for _, command := range []string{"conflicts", "noop"} {
			Expect(quell(ctx, command, "-f", both, "-n", ns, "--field-manager", "author2").err).To(And(
				ContainSubstring(`note: "author2" owns nothing of deployment.apps/web; unless it is a new manager, did you mean --field-manager ci?`),
				ContainSubstring(`note: "author2" owns nothing of gadget.test.quell.dev/g; unless it is a new manager, did you mean --field-manager author?`)))
		}
		before := get(ctx, web)
		Expect(before.GetManagedFields()).To(HaveLen(len(get(ctx, web).GetManagedFields())))
		mustApply(ctx, "me", ns, deployment("web", "nginx:2", 1, "x"))
		lost := []string{}
		for _, m := range fieldowners.Diff(fieldowners.Parse(before.GetManagedFields()), fieldowners.Parse(get(ctx, web).GetManagedFields())) {
			if slices.ContainsFunc(m.Lost, func(o fieldowners.Owner) bool { return o.Manager == "ci" }) {
				lost = append(lost, m.Path.String())
			}
		}
		Expect(lost).To(Equal([]string{`.spec.template.spec.containers[name="web"].image`}))
	})

	It("takes what client-side apply remembers", func(ctx SpecContext) {
		ns := namespace(ctx)
		kubectl(ctx, "apply", "-n", ns, "-f", file(deployment("web", "nginx:1", 1, "x")))
		web := object("apps/v1", "Deployment", ns, "web")
		update(ctx, "autoscaler", web, `{"spec":{"replicas":3}}`, "scale")
		told := quell(ctx, "conflicts", "deployment/web", "-n", ns)
		Expect(told.code).To(Equal(1))
		Expect(told.err).To(Equal("note: the field manager is \"kubectl\", as with kubectl apply --server-side; --field-manager names another\n"))
		Expect(told.out).To(MatchRegexp(`\.spec\.replicas +1 +3 +autoscaler \(Update/scale\)`))
		expect(ctx, 3, "conflicts", "gadgets.test.quell.dev/none", "-n", ns)
	})
})
