package differential_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	group          = "differential.quell.dev"
	customKinds    = 48
	objectsPerKind = 2
)

// custom is a kind with a random schema.
type custom struct {
	*kind
	spec *shape
	crd  *apiextensionsv1.CustomResourceDefinition
	// revision counts the changes of the schema; a default tells when the API server has taken one over.
	revision int
}

func newCustom(r *rand.Rand, i int) *custom {
	status := newRecord(r, 3)
	status.nullable, status.atomic, status.fallback = false, false, nil
	status.fields["conditions"] = conditions()
	spec := newRecord(r, 3)
	spec.nullable, spec.fallback = false, nil
	spec.fields["revision"] = &shape{sort: text, fallback: "0"}
	c := &custom{spec: spec, kind: &kind{
		GroupKind: schema.GroupKind{Group: group, Kind: fmt.Sprintf("Random%d", i)}, versions: []string{"v1"}, status: status,
	}}
	if r.IntN(4) == 0 {
		c.versions = append(c.versions, "v1beta1")
	}
	c.kind.spec = func() *shape { return c.spec }
	c.parts = func(r *rand.Rand, _ string) content {
		v, _ := c.spec.value(r).(content)
		return content{"spec": v, "metadata": someMetadata(r)}
	}
	c.told = func() string {
		return encoded(map[string]any{"spec": c.spec.properties(), "status": c.kind.status.properties()})
	}
	c.crd = c.definition()
	return c
}

// conditions are those of metav1.Condition, with less that is required.
func conditions() *shape {
	fields := map[string]*shape{}
	for _, name := range []string{"type", "status", "reason", "message"} {
		fields[name] = &shape{sort: text}
	}
	fields["lastTransitionTime"] = &shape{sort: moment}
	return &shape{sort: mapList, keys: []string{"type"}, item: &shape{sort: record, fields: fields}}
}

func someMetadata(r *rand.Rand) content {
	m := content{}
	if r.IntN(2) == 0 {
		m["labels"] = content{"a": fmt.Sprint(r.IntN(2)), "b": ""}
	}
	if r.IntN(3) == 0 {
		m["annotations"] = content{"note": fmt.Sprint(r.IntN(2))}
	}
	if r.IntN(4) == 0 {
		var owners []any
		for _, i := range r.Perm(2) {
			owners = append(owners, content{
				"apiVersion": "v1", "kind": "ConfigMap", "name": fmt.Sprintf("owner-%d", i), "uid": fmt.Sprintf("0000000%d-0000-0000-0000-000000000000", i),
			})
		}
		m["ownerReferences"] = owners
	}
	return m
}

func (c *custom) definition() *apiextensionsv1.CustomResourceDefinition {
	plural := strings.ToLower(c.Kind) + "s"
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = plural + "." + group
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: group, Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: c.Kind, ListKind: c.Kind + "List", Plural: plural, Singular: strings.ToLower(c.Kind)},
	}
	for i, version := range c.versions {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: i == 0,
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: c.root()},
		})
	}
	return crd
}

func (c *custom) root() *apiextensionsv1.JSONSchemaProps {
	return &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"spec": c.spec.properties(), "status": c.kind.status.properties(),
	}}
}

// changeDefault gives one scalar field another default, or one for the first time, or none, and waits until that is in force.
func (c *custom) changeDefault(ctx context.Context, r *rand.Rand) {
	GinkgoHelper()
	fields := append(scalarFields(c.spec), scalarFields(c.kind.status)...)
	if len(fields) == 0 {
		return
	}
	field := fields[r.IntN(len(fields))]
	field.fallback = nil
	if r.IntN(4) > 0 {
		field.fallback = field.value(r)
	}
	c.revision++
	c.spec.fields["revision"].fallback = fmt.Sprint(c.revision)
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(c.crd), c.crd)).To(Succeed())
	c.crd.Spec = c.definition().Spec
	Expect(admin.Update(ctx, c.crd)).To(Succeed())
	Eventually(func(g Gomega) {
		probe := &unstructured.Unstructured{Object: content{"spec": content{}}}
		probe.SetGroupVersionKind(c.WithVersion(c.versions[0]))
		probe.SetName("probe")
		probe.SetNamespace(namespace)
		g.Expect(admin.Create(ctx, probe, client.DryRunAll)).To(Succeed())
		revision, _, _ := unstructured.NestedString(probe.Object, "spec", "revision")
		g.Expect(revision).To(Equal(fmt.Sprint(c.revision)))
	}).WithContext(ctx).Should(Succeed())
	for _, w := range c.kept {
		w.schemaChanged()
	}
}

// scalarFields are the fields of structs that may have a default, all but keys.
func scalarFields(s *shape) []*shape {
	var found []*shape
	for _, name := range slices.Sorted(maps.Keys(s.fields)) {
		field := s.fields[name]
		if name == "revision" || field.fields == nil && field.item == nil && !slices.Contains(scalars, field.sort) {
			continue
		}
		if slices.Contains(scalars, field.sort) {
			found = append(found, field)
			continue
		}
		found = append(found, scalarFields(field)...)
	}
	if s.item != nil && s.sort != mapList {
		found = append(found, scalarFields(s.item)...)
	}
	return found
}

var _ = Describe("custom resources of random schemas", func() {
	It("are not written to when a real apply would change nothing, and only then", func(ctx SpecContext) {
		tally.reset()
		seed := fromEnvironment("QUELL_SEED", 12)
		steps := fromEnvironment("QUELL_STEPS", 600)
		GinkgoWriter.Printf("QUELL_SEED=%d QUELL_STEPS=%d\n", seed, steps)
		r := seeded(seed)
		customs, objects := newCustoms(ctx, r, seed)
		run(ctx, objects, steps, func(ctx context.Context) {
			c := customs[r.IntN(len(customs))]
			c.changeDefault(ctx, r)
			tally.count("schemas", "changes of a default")
		})
		conclude(seed)
	}, NodeTimeout(2*time.Hour))
})

func newCustoms(ctx context.Context, r *rand.Rand, seed int) ([]*custom, []*object) {
	GinkgoHelper()
	var customs []*custom
	var crds []*apiextensionsv1.CustomResourceDefinition
	var names []string
	documents := []string{"apis/" + group + "/v1"}
	for i := range customKinds {
		c := newCustom(r, i)
		customs, crds = append(customs, c), append(crds, c.crd)
		for _, version := range c.versions {
			names = append(names, "dev.quell.differential."+version+"."+c.Kind)
			documents = append(documents, "apis/"+group+"/"+version)
		}
	}
	slices.Sort(documents)
	install(ctx, crds...)
	types := published(ctx, slices.Compact(documents), names)
	var objects []*object
	for i, c := range customs {
		c.types = types
		Expect(c.keep()).To(Succeed())
		for n := range objectsPerKind {
			objects = append(objects, newObject(c.kind, fmt.Sprintf("custom-%d-%d", i, n), uint64(seed)))
		}
	}
	tally.add("schemas", "random", len(customs))
	tally.add("objects", "custom resources", len(objects))
	return customs, objects
}

// conclude prints the figures and fails when there is a fault.
func conclude(seed int) {
	GinkgoHelper()
	AddReportEntry(fmt.Sprintf("figures of QUELL_SEED=%d", seed), tally.String())
	faults := tally.found()
	Expect(faults).To(BeEmpty(), func() string { return fmt.Sprintf("QUELL_SEED=%d\n\n%s", seed, strings.Join(faults, "\n\n")) })
	Expect(tally.of("claims verified", "skip")).To(BeNumerically(">", 0), "nothing was proved")
}
