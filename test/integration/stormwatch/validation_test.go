package stormwatch_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

func validation() {
	DescribeTable("refuses, and says what to write instead", func(ctx SpecContext, spec string, words ...string) {
		err := admin.Create(ctx, newStormWatch("refused", spec), client.DryRunAll, client.FieldValidation("Strict"))
		Expect(err).To(HaveOccurred(), spec)
		for _, word := range words {
			Expect(err.Error()).To(ContainSubstring(word), spec)
		}
	},
		Entry("nothing to watch", `{}`, "nothing would be watched: list kinds, or set customResources to All"),
		Entry("no custom resources and no kinds", `{customResources: None}`, "nothing would be watched"),
		Entry("an unknown choice", `{customResources: Some}`, "spec.customResources", `"All", "None"`),
		Entry("an empty list of kinds", `{kinds: []}`, "spec.kinds", "at least 1 items"),
		Entry("too many kinds", `{kinds: [`+listOf(65, "{group: apps, kind: K%d}")+`]}`, "spec.kinds", "64"),
		Entry("a kind twice", `{kinds: [{group: apps, kind: Deployment}, {group: apps, kind: Deployment}]}`, "spec.kinds[1]", "Duplicate value"),
		Entry("a kind without group", `{kinds: [{kind: Pod}]}`, "spec.kinds[0].group", "Required value"),
		Entry("an empty group", `{kinds: [{group: "", kind: Pod}]}`, "spec.kinds[0].group", "at least 1 chars long"),
		Entry("a group with its version", `{kinds: [{group: apps/v1, kind: Deployment}]}`, "spec.kinds[0].group", "must be an API group, for example apps; core for the group that has no name; or *"),
		Entry("a part of a group", `{kinds: [{group: "*.example.com", kind: "*"}]}`, "spec.kinds[0].group", "must be an API group"),
		Entry("a group without kind", `{kinds: [{group: apps}]}`, "spec.kinds[0].kind", "Required value"),
		Entry("a resource for a kind", `{kinds: [{group: apps, kind: deployments}]}`, "spec.kinds[0].kind", "must be a kind as manifests have it, for example Deployment; or *"),
		Entry("no namespace", `{customResources: All, namespaces: []}`, "spec.namespaces", "at least 1 items"),
		Entry("a namespace twice", `{customResources: All, namespaces: [a, a]}`, "spec.namespaces[1]", "Duplicate value"),
		Entry("a name that no namespace has", `{customResources: All, namespaces: [Team_A]}`, "spec.namespaces[0]", "must be the name of a namespace"),
		Entry("too many namespaces", `{customResources: All, namespaces: [`+listOf(65, "n%d")+`]}`, "spec.namespaces", "64"),
		Entry("a rate of 0", `{customResources: All, thresholds: {writesPerMinute: 0}}`, "spec.thresholds.writesPerMinute", "greater than or equal to 1"),
		Entry("too high a rate", `{customResources: All, thresholds: {managerWritesPerMinute: 1000001}}`, "spec.thresholds.managerWritesPerMinute", "1000000"),
		Entry("too short a time", `{customResources: All, thresholds: {persistSeconds: 9}}`, "spec.thresholds.persistSeconds", "greater than or equal to 10"),
		Entry("no storms", `{customResources: All, maxStorms: 0}`, "spec.maxStorms", "greater than or equal to 1"),
		Entry("too many storms", `{customResources: All, maxStorms: 51}`, "spec.maxStorms", "less than or equal to 50"),
		Entry("an unknown field", `{customResources: All, kind: []}`, "unknown field", "spec.kind"),
	)

	It("refuses values of another type and hostile ones in every field, by its path", func(ctx SpecContext) {
		texts := []any{int64(7), true, []any{"a"}, "", "../../{{ .x }}$(PLAIN)", "line\nbreak\x00\x1b[31m", "\u202e😀", strings.Repeat("x", 10<<10)}
		numbers := []any{"7", 1.5, true, []any{int64(1)}, int64(-1), int64(0), int64(math.MaxInt32), int64(math.MaxInt64)}
		fields := map[string]struct {
			spec   string // with VALUE in the field
			values []any
		}{
			"spec.customResources":                   {`{kinds: [{group: apps, kind: Deployment}], customResources: VALUE}`, texts},
			"spec.kinds[0].group":                    {`{kinds: [{group: VALUE, kind: Deployment}]}`, texts},
			"spec.kinds[0].kind":                     {`{kinds: [{group: apps, kind: VALUE}]}`, texts},
			"spec.namespaces[0]":                     {`{customResources: All, namespaces: [VALUE]}`, texts},
			"spec.maxStorms":                         {`{customResources: All, maxStorms: VALUE}`, numbers},
			"spec.thresholds.writesPerMinute":        {`{customResources: All, thresholds: {writesPerMinute: VALUE}}`, numbers},
			"spec.thresholds.managerWritesPerMinute": {`{customResources: All, thresholds: {managerWritesPerMinute: VALUE}}`, numbers},
			"spec.thresholds.persistSeconds":         {`{customResources: All, thresholds: {persistSeconds: VALUE}}`, numbers},
		}
		for path, field := range fields {
			for _, value := range field.values {
				text, err := json.Marshal(value)
				Expect(err).NotTo(HaveOccurred())
				err = admin.Create(ctx, newStormWatch("hostile", strings.Replace(field.spec, "VALUE", string(text), 1)), client.DryRunAll)
				Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%s = %.80q: %v", path, value, err)
				Expect(err.Error()).To(ContainSubstring(path))
			}
		}
		Expect(fields).To(HaveLen(leaves("stormwatches")), "a field of the CRD is not tried")
	})

	It("accepts wildcards, the sample and the examples of docs/stormwatch.md", func(ctx SpecContext) {
		for _, spec := range []string{`{kinds: [{group: "*", kind: "*"}]}`, `{kinds: [{group: core, kind: "*"}, {group: "*", kind: Widget}], namespaces: [default]}`} {
			Expect(admin.Create(ctx, newStormWatch("accepted", spec), client.DryRunAll, client.FieldValidation("Strict"))).To(Succeed(), spec)
		}
		for _, path := range []string{filepath.Join(configDir, "samples", "stormwatch.yaml"), "../../../docs/stormwatch.md"} {
			for _, text := range yamlIn(path) {
				u := &unstructured.Unstructured{}
				Expect(yaml.Unmarshal([]byte(text), &u.Object)).To(Succeed(), text)
				if u.GetKind() == "" { // a spec
					u = newStormWatch("example", text)
				}
				Expect(admin.Create(ctx, u, client.DryRunAll, client.FieldValidation("Strict"))).To(Succeed(), text)
			}
		}
	})

	It("has roles in config/stormwatch that the aggregated one takes up, and none that reads Secrets but everything.yaml", func(ctx SpecContext) {
		kubectl("kustomize", filepath.Join(configDir, "stormwatch"))
		paths, err := filepath.Glob(filepath.Join(configDir, "stormwatch", "*.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(paths).To(HaveLen(3))
		for _, path := range paths {
			raw, err := os.ReadFile(path)
			Expect(err).NotTo(HaveOccurred())
			role := &rbacv1.ClusterRole{}
			Expect(yaml.UnmarshalStrict(raw, role)).To(Succeed())
			Expect(role.Labels).To(HaveKeyWithValue("stormwatch.quell.dev/aggregate", "true"), path)
			Expect(admin.Create(ctx, role, client.DryRunAll)).To(Succeed())
			for _, rule := range role.Rules {
				Expect(rule.Verbs).To(ConsistOf("list", "watch"), path)
				if filepath.Base(path) != "everything.yaml" {
					Expect(rule.APIGroups).NotTo(ContainElement("*"), path)
					if rule.APIGroups[0] == "" {
						Expect(rule.Resources).NotTo(ContainElement(BeElementOf("*", "secrets")), path)
					}
				}
			}
		}
		var own rbacv1.ClusterRole
		Expect(admin.Get(ctx, client.ObjectKey{Name: "quell-stormwatch"}, &own)).To(Succeed())
		Expect(own.Rules).To(ConsistOf(HaveField("APIGroups", []string{"test.quell.dev"})), "of its own it has none")
	})
}

// leaves is the number of fields in the spec of a CRD that have no fields of their own.
func leaves(resource string) int {
	GinkgoHelper()
	raw, err := os.ReadFile(filepath.Join(configDir, "crd", "quell.dev_"+resource+".yaml"))
	Expect(err).NotTo(HaveOccurred())
	var crd apiextensionsv1.CustomResourceDefinition
	Expect(yaml.Unmarshal(raw, &crd)).To(Succeed())
	var count func(s apiextensionsv1.JSONSchemaProps) int
	count = func(s apiextensionsv1.JSONSchemaProps) int {
		if s.Items != nil {
			return count(*s.Items.Schema)
		}
		n := 0
		for _, property := range s.Properties {
			n += count(property)
		}
		return max(n, 1)
	}
	return count(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"])
}

// yamlIn gives the YAML blocks of a document, or the whole file.
func yamlIn(path string) []string {
	GinkgoHelper()
	raw, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	if filepath.Ext(path) != ".md" {
		return []string{string(raw)}
	}
	var blocks []string
	for _, block := range strings.Split(string(raw), "```yaml\n")[1:] {
		text, _, closed := strings.Cut(block, "```")
		Expect(closed).To(BeTrue(), block)
		blocks = append(blocks, text)
	}
	Expect(blocks).NotTo(BeEmpty())
	return blocks
}

func listOf(n int, format string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(items, ", ")
}
