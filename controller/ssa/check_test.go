package ssa

import (
	"testing"

	"github.com/hduolab/quell/controller/fieldowners"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

func ownerNamed(manager string) fieldowners.Owner {
	return fieldowners.Owner{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1"}
}

// owns is the entry of a manager that owns these fields of a container named web.
func owns(manager string, fields ...string) fieldowners.Entry {
	set := fieldpath.NewSet(fieldpath.MakePathOrDie("spec", "replicas"))
	for _, f := range fields {
		item := []any{"spec", "template", "spec", "containers", fieldpath.KeyByFields("name", "web")}
		if f != "" {
			item = append(item, f)
		}
		set.Insert(fieldpath.MakePathOrDie(item...))
	}
	return fieldowners.Entry{Owner: ownerNamed(manager), Fields: set}
}

func TestDifference(t *testing.T) {
	web := func(fields object) *unstructured.Unstructured {
		fields["name"] = "web"
		return deployment(object{"replicas": int64(0), "template": object{"spec": object{"containers": []any{fields}}}})
	}
	const path = `.spec.template.spec.containers[name="web"]`
	me := []fieldowners.Entry{owns("me", "", "name", "image")}
	for _, test := range []struct {
		name          string
		desired, live *unstructured.Unstructured
		entries       []fieldowners.Entry
		want          []string
	}{
		{"nothing", web(object{"image": "a"}), web(object{"image": "a", "stdin": true}), me, nil},
		{"a value", web(object{"image": "b"}), web(object{"image": "a"}), me, []string{path + ".image changed"}},
		{"a value that is missing", web(object{"image": "b"}), web(object{}), me, []string{path + ".image changed"}},
		{"a field we do not own yet", web(object{"image": "a", "stdin": true}), web(object{"image": "a", "stdin": true}), me, []string{path + ".stdin added"}},
		{"a field we do not want any more", web(object{}), web(object{"image": "a"}), me, []string{path + ".image removed"}},
		{"a field that is another's", web(object{"image": "a"}), web(object{"image": "b"}), []fieldowners.Entry{owns("me", "", "name"), owns("they", "image")},
			[]string{path + `.image taken by "they" (Apply)`}},
		{"everything without an entry", web(object{"image": "a"}), web(object{"image": "a"}), nil,
			[]string{".spec.replicas added", path + ".image added", path + ".name added"}},
		{"a zero that the live object leaves out", web(object{"image": "a"}), pods(object{"containers": []any{object{"name": "web", "image": "a"}}}), me, nil},
		{"a zero that is something else there", web(object{"image": "a"}), deployment(object{"replicas": int64(5), "template": web(object{"image": "a"}).Object["spec"].(object)["template"]}), me,
			[]string{".spec.replicas changed"}},
		{"another version of ours", web(object{"image": "a"}), web(object{"image": "a"}), []fieldowners.Entry{{
			Owner: fieldowners.Owner{Manager: "me", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1beta1"}, Fields: me[0].Fields}},
			[]string{".apiVersion changed"}},
		{"an entry of another operation", web(object{"image": "a"}), web(object{"image": "a"}), []fieldowners.Entry{{
			Owner: fieldowners.Owner{Manager: "me", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v1"}, Fields: me[0].Fields}},
			[]string{`.spec.replicas shared with "me" (Update)`, path + `.image shared with "me" (Update)`, path + `.name shared with "me" (Update)`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			live, err := builtin.ObjectToTyped(test.live, typed.AllowDuplicates)
			g.Expect(err).NotTo(HaveOccurred())
			reasons, err := difference(contentOf(t, test.desired, ""), live, test.entries, ownerNamed("me"), digest{})
			g.Expect(err).NotTo(HaveOccurred())
			var words []string
			for _, r := range reasons {
				words = append(words, r.String())
			}
			g.Expect(words).To(Equal(test.want))
		})
	}
}

func TestZeroValuesAreTheSameAsNone(t *testing.T) {
	owned := func(container object) *unstructured.Unstructured {
		container["name"] = "web"
		return pods(object{"containers": []any{container}})
	}
	for name, test := range map[string]struct {
		desired, live object
		differs       bool
	}{
		"empty string":           {object{"image": ""}, object{}, false},
		"false":                  {object{"stdin": false}, object{}, false},
		"empty atomic list":      {object{"command": []any{}}, object{}, false},
		"empty map list":         {object{"env": []any{}}, object{}, false},
		"empty struct":           {object{"resources": object{}}, object{}, false},
		"null":                   {object{"image": nil}, object{}, false},
		"default key left out":   {object{"ports": []any{object{"containerPort": int64(1), "hostPort": int64(0)}}}, object{"ports": []any{object{"containerPort": int64(1), "protocol": "TCP"}}}, false},
		"empty list that is not": {object{"command": []any{}}, object{"command": []any{"x"}}, true},
		"false that is true":     {object{"stdin": false}, object{"stdin": true}, true},
		"atomic map that is not": {object{"env": []any{object{"name": "A", "valueFrom": object{"fieldRef": object{"fieldPath": "a"}}}}}, object{"env": []any{object{"name": "A", "valueFrom": object{"fieldRef": object{}}}}}, true},
		"text that is none":      {object{"image": "a"}, object{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			live, err := builtin.ObjectToTyped(owned(test.live))
			g.Expect(err).NotTo(HaveOccurred())
			v, err := compare(contentOf(t, owned(test.desired), ""), live)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(!v.differing.Empty()).To(Equal(test.differs), "%v", v.differing)
		})
	}
}

func TestWhatAnAtomicValueHasMoreThanIsWanted(t *testing.T) {
	env := func(ref object) object {
		return object{"env": []any{object{"name": "A", "valueFrom": object{"fieldRef": ref}}}}
	}
	tolerations := func(one object) object { return object{"tolerations": []any{one}} }
	web := func(container object) object {
		container["name"] = "web"
		return object{"containers": []any{container}}
	}
	for name, test := range map[string]struct {
		desired, live object
		isFuller      bool
	}{
		"a default":      {web(env(object{"fieldPath": "a"})), web(env(object{"fieldPath": "a", "apiVersion": "v1"})), false},
		"no default":     {web(env(object{"fieldPath": "a"})), web(env(object{"fieldPath": "a", "apiVersion": "v2"})), true},
		"several":        {tolerations(object{"key": "a"}), tolerations(object{"key": "a", "effect": "NoSchedule", "value": "b", "operator": "Equal"}), true},
		"in a list":      {tolerations(object{"key": "a"}), tolerations(object{"key": "a", "effect": "NoSchedule"}), true},
		"the same":       {tolerations(object{"key": "a"}), tolerations(object{"key": "a"}), false},
		"a zero more":    {tolerations(object{"key": "a"}), tolerations(object{"key": "a", "tolerationSeconds": int64(0)}), true},
		"a zero less":    {tolerations(object{"key": "a", "tolerationSeconds": int64(0)}), tolerations(object{"key": "a"}), true},
		"null, not zero": {tolerations(object{"key": "a", "tolerationSeconds": int64(0)}), tolerations(object{"key": "a", "tolerationSeconds": nil}), true},
		"a zero":         {tolerations(object{"key": "a", "tolerationSeconds": int64(0)}), tolerations(object{"key": "a", "tolerationSeconds": int64(0)}), false},
		"an empty map":   {web(env(object{})), web(env(object{"fieldPath": "a"})), true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			live, err := builtin.ObjectToTyped(pods(test.live))
			g.Expect(err).NotTo(HaveOccurred())
			c := contentOf(t, pods(test.desired), "")
			v, err := compare(c, live)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(v.differing.Empty()).To(BeTrue(), "%v", v.differing)
			g.Expect(!v.fuller.Empty()).To(Equal(test.isFuller), "%v", v.fuller)
			if test.isFuller {
				g.Expect(v.surplus).NotTo(BeZero())
			} else {
				g.Expect(v.surplus).To(BeZero())
			}
			for range 20 { // maps have no order
				again, err := compare(c, live)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(again.surplus).To(Equal(v.surplus))
			}
			mine := []fieldowners.Entry{{Owner: ownerNamed("me"), Fields: c.fields}}
			for surplus, differs := range map[digest]bool{{}: test.isFuller, v.surplus: false} {
				reasons, err := difference(c, live, mine, ownerNamed("me"), surplus)
				g.Expect(err).NotTo(HaveOccurred())
				if differs && surplus != v.surplus {
					g.Expect(reasons).NotTo(BeEmpty())
				} else {
					g.Expect(reasons).To(BeEmpty())
				}
			}
		})
	}
}

func TestItemsWhoseKeysDifferInADefaultAreToldApart(t *testing.T) {
	g := NewWithT(t)
	tcp, udp := object{"containerPort": int64(53)}, object{"containerPort": int64(53), "protocol": "UDP"}
	container := func(tcp, udp object) *unstructured.Unstructured {
		return pods(object{"containers": []any{object{"name": "dns", "ports": []any{tcp, udp}}}})
	}
	desired := contentOf(t, container(tcp, with(udp, "hostPort", int64(54))), "")
	live, err := builtin.ObjectToTyped(container(with(tcp, "protocol", "TCP"), with(udp, "hostPort", int64(53))))
	g.Expect(err).NotTo(HaveOccurred())
	reasons, err := difference(desired, live, []fieldowners.Entry{{Owner: ownerNamed("me"), Fields: desired.fields}}, ownerNamed("me"), digest{})
	g.Expect(err).NotTo(HaveOccurred())
	const port = `.spec.template.spec.containers[name="dns"].ports[containerPort=53,protocol="UDP"]`
	g.Expect(reasons).To(HaveExactElements(Reason{Change: Changed, Path: port + ".hostPort"}))

	left := cut(desired.object.Object, pathOf(t, port+".hostPort"))
	g.Expect(left).To(Equal(container(tcp, udp).Object))
	_, err = newContent(&unstructured.Unstructured{Object: left.(object)}, builtin, "")
	g.Expect(err).NotTo(HaveOccurred())
}
