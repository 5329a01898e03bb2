package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/test/localcluster"
)

// field is one that holds a value, not fields of its own, in a spec that has it.
type field struct {
	// path is of the schema: spec.env[].name, and spec.commonLabels.* for any key.
	path   string
	schema apiextensionsv1.JSONSchemaProps
	// spec, by its number in the file, has the field at place: keys of objects, indices of lists.
	number int
	spec   map[string]any
	place  []any
	// root is the schema of the spec.
	root apiextensionsv1.JSONSchemaProps
}

// with is the spec with another value in the field.
func (f field) with(value any) map[string]any {
	changed := map[string]any{"spec": runtime.DeepCopyJSON(f.spec)}
	return set(changed, append([]any{"spec"}, f.place...), value).(map[string]any)
}

// withKey is the spec with another key, for a field that any key may have.
func (f field) withKey(key string) map[string]any {
	parent := f.place[:len(f.place)-1]
	return field{spec: f.spec, place: parent}.with(map[string]any{key: "v"})
}

func set(within any, place []any, value any) any {
	if len(place) == 0 {
		return value
	}
	switch at := place[0].(type) {
	case string:
		object := within.(map[string]any)
		object[at] = set(object[at], place[1:], value)
	case int:
		list := within.([]any)
		list[at] = set(list[at], place[1:], value)
	}
	return within
}

// concrete is the path of the field as the API server writes it.
func (f field) concrete() string {
	path := "spec"
	for i, at := range f.place {
		switch at := at.(type) {
		case int:
			path += "[" + strconv.Itoa(at) + "]"
		case string:
			if f.anyKey() && i == len(f.place)-1 {
				return path
			}
			path += "." + at
		}
	}
	return path
}

func (f field) anyKey() bool { return strings.HasSuffix(f.path, ".*") }

// names reports whether a refusal leads to the field: by its path, that of what holds it, or a word of its path.
func (f field) names(err error) bool {
	var refusal apierrors.APIStatus
	if !errors.As(err, &refusal) || refusal.Status().Details == nil {
		return false
	}
	concrete := f.concrete()
	for _, cause := range refusal.Status().Details.Causes {
		switch {
		case cause.Field == "spec":
			words := strings.FieldsFunc(f.path, func(r rune) bool { return strings.ContainsRune(".[]*", r) })
			if slices.ContainsFunc(words[1:], func(word string) bool { return strings.Contains(cause.Message, word) }) {
				return true
			}
		case isWithin(concrete, cause.Field), isWithin(cause.Field, concrete), strings.Contains(cause.Message, concrete):
			return true
		}
	}
	return false
}

// isExact reports whether a refusal has the very path of the field.
func (f field) isExact(err error) bool {
	var refusal apierrors.APIStatus
	if !errors.As(err, &refusal) || refusal.Status().Details == nil {
		return false
	}
	concrete := f.concrete()
	for _, cause := range refusal.Status().Details.Causes {
		if cause.Field == concrete || f.anyKey() && isWithin(cause.Field, concrete) {
			return true
		}
	}
	return false
}

func isWithin(path, outer string) bool {
	rest, within := strings.CutPrefix(path, outer)
	return within && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// wrong are values that the schema forbids.
func (f field) wrong() []any {
	s := f.schema
	values := []any{[]any{"a"}}
	switch {
	case s.XIntOrString:
		values = append(values, true, 1.5, map[string]any{})
	case s.Type == "string":
		values = append(values, int64(7), true, map[string]any{})
	case s.Type == "integer":
		values = append(values, "seven", 1.5, true)
	case s.Type == "boolean":
		values = append(values, "yes", int64(1))
	case s.Type == "object":
		values = append(values, "a", int64(1))
	}
	if s.MaxLength != nil {
		values = append(values, strings.Repeat("a", int(*s.MaxLength)+1))
	}
	if s.MinLength != nil {
		values = append(values, "")
	}
	if s.Maximum != nil {
		values = append(values, int64(*s.Maximum)+1, int64(math.MaxInt64))
	}
	if s.Minimum != nil {
		values = append(values, int64(*s.Minimum)-1, int64(math.MinInt64))
	}
	if len(s.Enum) > 0 {
		values = append(values, "Hostile", "")
	}
	if s.Pattern != "" {
		values = append(values, "{{", "1 \n")
	}
	return values
}

var hostileTexts = []string{"", "../../{{ .Values.x }}$(PLAIN)`id`", "line\nbreak: [\x00\x1b[31m\u202e😀", strings.Repeat("x", 10<<10)}

// hostile are values of the right type.
func (f field) hostile() []any {
	switch {
	case f.schema.XIntOrString:
		return []any{int64(-1), int64(math.MaxInt64), "-1", "101%", "1e400"}
	case f.schema.Type == "string" && len(f.schema.Enum) == 0:
		var values []any
		for _, text := range hostileTexts {
			values = append(values, text)
		}
		return values
	case f.schema.Type == "integer":
		return []any{int64(-1), int64(math.MaxInt32), int64(math.MaxInt64)}
	case f.schema.Type == "object":
		return []any{map[string]any{"../": "{{"}, map[string]any{"": nil}, map[string]any{"spec": map[string]any{"\x00": []any{}}}}
	}
	return nil
}

// everyField reads testdata/every_field.yaml, and wants it to have every field of the CRD's schema and to be accepted as it says.
func everyField(ctx context.Context) []field {
	GinkgoHelper()
	var crd apiextensionsv1.CustomResourceDefinition
	readYAML(filepath.Join(configDir, "crd", "quell.dev_apps.yaml"), &crd)
	schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	var specs struct{ Accepted, Refused []map[string]any }
	readYAML(filepath.Join("testdata", "every_field.yaml"), &specs)

	found := map[string]field{}
	for i, spec := range append(specs.Accepted, specs.Refused...) {
		spec = whole(spec).(map[string]any)
		err := tryOne(ctx, map[string]any{"spec": spec})
		Expect(err == nil).To(Equal(i < len(specs.Accepted)), "spec %d: %v", i, err)
		eachValue(schema, spec, field{path: "spec", number: i, spec: spec, root: schema}, found)
	}
	Expect(slices.Sorted(maps.Keys(found))).To(Equal(slices.Sorted(slices.Values(leaves(schema, "spec")))), "testdata/every_field.yaml")
	return slices.SortedFunc(maps.Values(found), func(a, b field) int { return strings.Compare(a.path, b.path) })
}

func readYAML(path string, into any) {
	GinkgoHelper()
	raw, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	Expect(yaml.Unmarshal(raw, into)).To(Succeed(), path)
}

// whole has whole numbers as integers, which the YAML reader makes floats.
func whole(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key := range value {
			value[key] = whole(value[key])
		}
	case []any:
		for i := range value {
			value[i] = whole(value[i])
		}
	case float64:
		if value == math.Trunc(value) {
			return int64(value)
		}
	}
	return value
}

// leaves are the paths of all fields of a schema that have no fields of their own.
func leaves(s apiextensionsv1.JSONSchemaProps, path string) []string {
	switch {
	case s.Type == "array":
		return leaves(*s.Items.Schema, path+"[]")
	case s.AdditionalProperties != nil:
		return leaves(*s.AdditionalProperties.Schema, path+".*")
	case len(s.Properties) == 0:
		return []string{path}
	}
	var paths []string
	for name, property := range s.Properties {
		paths = append(paths, leaves(property, path+"."+name)...)
	}
	return paths
}

// eachValue adds the fields of a value that are not found yet.
func eachValue(s apiextensionsv1.JSONSchemaProps, value any, f field, found map[string]field) {
	switch value := value.(type) {
	case map[string]any:
		for key := range value {
			switch property, isProperty := s.Properties[key]; {
			case isProperty:
				eachValue(property, value[key], f.in(key, "."+key), found)
			case s.AdditionalProperties != nil:
				eachValue(*s.AdditionalProperties.Schema, value[key], f.in(key, ".*"), found)
			}
		}
	case []any:
		for i := range value {
			eachValue(*s.Items.Schema, value[i], f.in(i, "[]"), found)
		}
	}
	if _, isFound := found[f.path]; !isFound && s.Type != "array" && len(s.Properties) == 0 && s.AdditionalProperties == nil {
		f.schema = s
		found[f.path] = f
	}
}

func (f field) in(at any, step string) field {
	f.place, f.path = append(slices.Clone(f.place), at), f.path+step
	return f
}

// attempt is a spec with one hostile value, and what the API server said.
type attempt struct {
	field
	spec map[string]any
	// text is the value as a report shows it.
	text string
	err  error
}

func (a attempt) String() string { return fmt.Sprintf("%s = %.60q: %v", a.path, a.text, a.err) }

// narrowed have specs without other fields where the CRD accepts these, so that the operator meets no other fault first.
func narrowed(ctx context.Context, fields []field) []field {
	attempts := make([]attempt, len(fields))
	for i, f := range fields {
		alone := f.alone()
		attempts[i] = attempt{field: alone, spec: map[string]any{"spec": alone.spec}}
	}
	for i, a := range try(ctx, attempts) {
		if a.err == nil {
			fields[i] = a.field
		}
	}
	return fields
}

// alone has a spec with little but the field: what schemas require, and ports.
func (f field) alone() field {
	spec := only(f.root, f.spec, f.place).(map[string]any)
	for _, needed := range []string{"ports", "replicas"} {
		if value, has := f.spec[needed]; has && spec[needed] == nil {
			spec[needed] = value
		}
	}
	f.spec, f.place = spec, slices.Clone(f.place)
	for i, at := range f.place {
		if _, isIndex := at.(int); isIndex {
			f.place[i] = 0
		}
	}
	return f
}

// only is what leads to a place within a value, and what the schemas on the way require.
func only(s apiextensionsv1.JSONSchemaProps, value any, place []any) any {
	if len(place) == 0 {
		return value
	}
	at, isIndex := place[0].(int)
	if isIndex {
		return []any{only(*s.Items.Schema, value.([]any)[at], place[1:])}
	}
	kept, object := map[string]any{}, value.(map[string]any)
	for _, name := range s.Required {
		kept[name] = object[name]
	}
	key := place[0].(string)
	property, isProperty := s.Properties[key]
	if !isProperty {
		property = *s.AdditionalProperties.Schema
	}
	kept[key] = only(property, object[key], place[1:])
	return kept
}

// bySpec are the fields of each spec.
func bySpec(fields []field) map[int][]field {
	specs := map[int][]field{}
	for _, f := range fields {
		specs[f.number] = append(specs[f.number], f)
	}
	return specs
}

func tryOne(ctx context.Context, spec map[string]any) error {
	return admin.Create(ctx, hostileApp("default", "hostile", spec), client.DryRunAll, client.FieldValidation("Strict"))
}

// try sends all attempts, by dry run, several at a time.
func try(ctx context.Context, attempts []attempt) []attempt {
	sender := clientAs(cluster.Config(), "hostile")
	work := make(chan int)
	var senders sync.WaitGroup
	for range 8 {
		senders.Go(func() {
			for i := range work {
				attempts[i].err = sender.Create(ctx, hostileApp("default", "hostile", attempts[i].spec), client.DryRunAll, client.FieldValidation("Strict"))
			}
		})
	}
	for i := range attempts {
		work <- i
	}
	close(work)
	senders.Wait()
	return attempts
}

// readable reads a spec as the operator does.
func readable(spec map[string]any) error {
	raw, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, &quellv1alpha1.App{})
}

func hostileApp(namespace, name string, content map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(content)}
	u.SetGroupVersionKind(quellv1alpha1.SchemeGroupVersion.WithKind("App"))
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

var _ = Describe("Every field of App", func() {
	It("refuses another type and what its schema forbids, by its own path", func(ctx SpecContext) {
		fields, refused := everyField(ctx), 0
		for round := 0; ; round++ {
			tried := 0
			for _, together := range bySpec(fields) {
				spec := map[string]any{"spec": runtime.DeepCopyJSON(together[0].spec)}
				var wrong []field
				for _, f := range together {
					if values := f.wrong(); round < len(values) {
						spec = set(spec, append([]any{"spec"}, f.place...), values[round]).(map[string]any)
						wrong = append(wrong, f)
					}
				}
				if len(wrong) == 0 {
					continue
				}
				err := tryOne(ctx, spec)
				for _, f := range wrong {
					Expect(f.isExact(err)).To(BeTrue(), "%s = %v: %v", f.path, f.wrong()[round], err)
				}
				tried += len(wrong)
			}
			if refused += tried; tried == 0 {
				break
			}
		}
		AddReportEntry("wrong values", map[string]int{"fields": len(fields), "refused": refused})
	})

	It("answers hostile values by name, or the operator copes with them", func(ctx SpecContext) {
		var attempts []attempt
		for _, f := range narrowed(ctx, everyField(ctx)) {
			for _, value := range f.hostile() {
				attempts = append(attempts, attempt{field: f, spec: f.with(value), text: fmt.Sprint(value)})
			}
			for _, key := range hostileTexts {
				if f.anyKey() {
					attempts = append(attempts, attempt{field: f, spec: f.withKey(key), text: "key " + key})
				}
			}
		}
		var accepted []attempt
		for _, a := range try(ctx, attempts) {
			if a.err != nil {
				Expect(apierrors.IsInvalid(a.err)).To(BeTrue(), "%v", a)
				Expect(a.names(a.err)).To(BeTrue(), "%v", a)
				continue
			}
			accepted = append(accepted, a)
			// One App that cannot be read would end the watch of all.
			Expect(readable(a.spec)).To(Succeed(), "%v", a)
		}
		sample := sampleOf(accepted)
		AddReportEntry("hostile values", map[string]int{"tried": len(attempts), "accepted": len(accepted), "run": len(sample)})
		expectToCope(ctx, sample)
	})
})

// sampleOf takes QUELL_HOSTILE (default 40) of the attempts, by the suite's random seed.
func sampleOf(accepted []attempt) []attempt {
	GinkgoHelper()
	n := 40
	if value := os.Getenv("QUELL_HOSTILE"); value != "" {
		var err error
		n, err = strconv.Atoi(value)
		Expect(err).NotTo(HaveOccurred(), "QUELL_HOSTILE")
	}
	Expect(accepted).NotTo(BeEmpty())
	choice := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 0)) //nolint:gosec // no secret
	choice.Shuffle(len(accepted), func(i, j int) { accepted[i], accepted[j] = accepted[j], accepted[i] })
	return accepted[:min(n, len(accepted))]
}

// expectToCope runs the operator on specs that the CRD accepted: it looks at each, tells of all that is wrong, has every child that
// it says it has, and then is calm.
func expectToCope(ctx context.Context, sample []attempt) {
	GinkgoHelper()
	ns := newNamespace(ctx)
	apps := named("shop", len(sample))
	for i, name := range apps {
		Expect(admin.Create(ctx, hostileApp(ns, name, sample[i].spec))).To(Succeed(), "%v", sample[i])
	}
	stalled := 0
	for i, name := range apps {
		a := newApp(ns, name)
		Eventually(ctx, func(g Gomega) { expectVerdict(ctx, g, a) }).Should(Succeed(), "%v", sample[i])
		if meta.IsStatusConditionTrue(a.Status.Conditions, quellv1alpha1.ConditionStalled) {
			stalled++
		}
	}
	AddReportEntry("hostile Apps", map[string]int{"Apps": len(apps), "stalled": stalled})
	// What waits for a person has its next look a minute after the last: each object's may fall into this time, once.
	awaitIdle(ctx)
	since := mark()
	Consistently(ctx, func() []localcluster.Request {
		requests := manager.requests(since, func(r localcluster.Request) bool { return r.Namespace == ns })
		return slices.DeleteFunc(slices.Clone(requests), func(r localcluster.Request) bool {
			same := count(requests, func(o localcluster.Request) bool {
				return o.Verb == r.Verb && o.Resource == r.Resource && o.Name == r.Name
			})
			return stalled > 0 && same == 1
		})
	}, calm, time.Second).Should(BeEmpty())
}

// expectVerdict wants the status to be that of the newest generation, to give a reason where it is stalled, and to tell of the
// children what is so.
func expectVerdict(ctx context.Context, g Gomega, a *quellv1alpha1.App) {
	s := status(ctx, g, a)
	g.Expect(s.ObservedGeneration).To(Equal(a.Generation))
	if c := meta.FindStatusCondition(s.Conditions, quellv1alpha1.ConditionStalled); c != nil {
		g.Expect(c.Reason).NotTo(BeEmpty())
		g.Expect(c.Message).NotTo(BeEmpty())
	}
	for _, child := range s.Children {
		var o client.Object
		switch child.Kind {
		case "Deployment":
			o = &appsv1.Deployment{}
		case "Service":
			o = &corev1.Service{}
		default:
			continue
		}
		err := admin.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: child.Name}, o)
		g.Expect(err == nil || apierrors.IsNotFound(err) && child.Ready != "True" && child.Reason != "").To(BeTrue(), "%+v: %v", child, err)
	}
	told := slices.ContainsFunc(s.Children, func(c quellv1alpha1.AppChild) bool { return c.Kind == "Deployment" })
	g.Expect(told).To(BeTrue(), "status %+v", s)
}
