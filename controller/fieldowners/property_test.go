package fieldowners_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hduolab/quell/controller/fieldowners"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// world is a random schema with an object of it, which random managers apply and update by structured-merge-diff's own rules.
type world struct {
	t        *testing.T
	rand     *rand.Rand
	schema   *schema.Schema
	root     schema.TypeRef
	live     *typed.TypedValue
	managers fieldpath.ManagedFields
	updater  *merge.Updater
}

const version = "v1"

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, rand: rand.New(rand.NewPCG(seed, 1)), schema: &schema.Schema{}, managers: fieldpath.ManagedFields{}}
	root := &schema.Map{ElementRelationship: schema.Separable}
	for i := range 4 {
		root.Fields = append(root.Fields, schema.StructField{Name: fmt.Sprintf("f%d", i), Type: w.randomType(3)})
	}
	w.schema.Types = append(w.schema.Types, schema.TypeDef{Name: "root", Atom: schema.Atom{Map: root}})
	name := "root"
	w.root = schema.TypeRef{NamedType: &name}
	w.updater = (&merge.UpdaterBuilder{Converter: oneVersion{}}).BuildUpdater()
	w.live = w.typed(map[string]any{})
	return w
}

// oneVersion converts nothing.
type oneVersion struct{}

func (oneVersion) Convert(o *typed.TypedValue, _ fieldpath.APIVersion) (*typed.TypedValue, error) {
	return o, nil
}
func (oneVersion) IsMissingVersionError(error) bool { return false }

func (w *world) typed(content map[string]any) *typed.TypedValue {
	tv, err := typed.AsTyped(value.NewValueInterface(content), w.schema, w.root)
	if err != nil {
		w.t.Fatal(err)
	}
	return tv
}

func (w *world) randomType(depth int) schema.TypeRef {
	text := schema.Scalar("string")
	scalar := schema.TypeRef{Inlined: schema.Atom{Scalar: &text}}
	relation := []schema.ElementRelationship{schema.Separable, schema.Atomic}[w.rand.IntN(2)]
	kinds := 6
	if depth == 0 {
		kinds = 2
	}
	switch w.rand.IntN(kinds) {
	case 1:
		return schema.TypeRef{Inlined: schema.Atom{List: &schema.List{ElementType: scalar, ElementRelationship: schema.Associative}}}
	case 2:
		return schema.TypeRef{Inlined: schema.Atom{Map: &schema.Map{ElementType: w.randomType(depth - 1), ElementRelationship: relation}}}
	case 3:
		item := &schema.Map{ElementRelationship: schema.Separable, Fields: []schema.StructField{
			{Name: "name", Type: scalar}, {Name: "zone", Type: scalar}, {Name: "x", Type: w.randomType(depth - 1)},
		}}
		return schema.TypeRef{Inlined: schema.Atom{List: &schema.List{
			ElementType:         schema.TypeRef{Inlined: schema.Atom{Map: item}},
			ElementRelationship: schema.Associative, Keys: []string{"name", "zone"},
		}}}
	case 4:
		return schema.TypeRef{Inlined: schema.Atom{List: &schema.List{ElementType: w.randomType(depth - 1), ElementRelationship: schema.Atomic}}}
	case 5:
		fields := []schema.StructField{{Name: "a", Type: w.randomType(depth - 1)}, {Name: "b.c/d", Type: w.randomType(depth - 1)}}
		return schema.TypeRef{Inlined: schema.Atom{Map: &schema.Map{Fields: fields, ElementRelationship: relation}}}
	}
	return scalar
}

func (w *world) word() string { return string(rune('p' + w.rand.IntN(3))) }

func (w *world) randomValue(ref schema.TypeRef) any {
	a, _ := w.schema.Resolve(ref)
	switch {
	case a.Map != nil:
		return w.randomMap(a.Map)
	case a.List != nil:
		return w.randomList(a.List)
	}
	return w.word()
}

func (w *world) randomMap(m *schema.Map) map[string]any {
	content := map[string]any{}
	for _, f := range m.Fields {
		if w.rand.IntN(3) > 0 {
			content[f.Name] = w.randomValue(f.Type)
		}
	}
	for range w.rand.IntN(3) {
		if len(m.Fields) == 0 {
			content["key."+w.word()] = w.randomValue(m.ElementType)
		}
	}
	return content
}

func (w *world) randomList(l *schema.List) []any {
	items := map[string]any{}
	for i := range w.rand.IntN(4) {
		item := w.randomValue(l.ElementType)
		id := fmt.Sprint(i)
		if l.ElementRelationship == schema.Associative {
			id = fmt.Sprint(item)
		}
		if len(l.Keys) > 0 {
			fields := item.(map[string]any)
			fields["name"], fields["zone"] = w.word(), w.word()
			id = fmt.Sprint(fields["name"], fields["zone"])
		}
		items[id] = item
	}
	list := []any{}
	for _, id := range slices.Sorted(maps.Keys(items)) {
		list = append(list, items[id])
	}
	return list
}

func (w *world) act() {
	manager := fmt.Sprintf("m%d", w.rand.IntN(4))
	content := w.typed(w.randomValue(w.root).(map[string]any))
	var err error
	if w.rand.IntN(3) == 0 {
		w.live, w.managers, err = w.updater.Update(w.live, content, version, w.managers, manager)
	} else {
		var merged *typed.TypedValue
		merged, w.managers, err = w.updater.Apply(w.live, content, version, w.managers, manager, true)
		if merged != nil {
			w.live = merged
		}
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// encoded are the managers' sets as managedFields, all of them appliers, sorted by name.
func (w *world) encoded() []metav1.ManagedFieldsEntry {
	var entries []metav1.ManagedFieldsEntry
	for _, name := range slices.Sorted(maps.Keys(w.managers)) {
		raw, err := w.managers[name].Set().ToJSON()
		if err != nil {
			w.t.Fatal(err)
		}
		entries = append(entries, metav1.ManagedFieldsEntry{
			Manager: name, Operation: metav1.ManagedFieldsOperationApply, APIVersion: version, FieldsV1: metav1.NewFieldsV1(string(raw)),
		})
	}
	return entries
}

func eachWorld(t *testing.T, check func(*world)) {
	for seed := range uint64(400) {
		w := newWorld(t, seed)
		for range 1 + w.rand.IntN(6) {
			w.act()
		}
		if check(w); t.Failed() {
			t.Fatalf("with seed %d, object %v, managers %v", seed, w.live.AsValue().Unstructured(), w.managers)
		}
	}
}

func (w *world) structure() *fieldpath.Set {
	paths, err := w.live.ToFieldSet()
	if err != nil {
		w.t.Fatal(err)
	}
	return paths
}

func eachNode(n *fieldowners.Node, visit func(*fieldowners.Node)) {
	visit(n)
	for _, c := range n.Children {
		eachNode(c, visit)
	}
}

func indices(entries []fieldowners.Entry, path fieldpath.Path) []int {
	var owners []int
	for i, e := range entries {
		if e.Fields.Has(path) {
			owners = append(owners, i)
		}
	}
	return owners
}

// With a schema every value has exactly the owners whose sets have its path, and all paths of the schema are found.
func TestAttributeAgreesWithMerge(t *testing.T) {
	eachWorld(t, func(w *world) {
		entries, structure := fieldowners.Parse(w.encoded()), w.structure()
		a := fieldowners.Attribute(w.live.AsValue().Unstructured().(map[string]any), entries, structure)
		eachNode(a.Root, func(n *fieldowners.Node) {
			if want := indices(entries, n.Path); !n.Inherited && !slices.Equal(n.Owners, want) {
				t.Errorf("%v has owners %v, want %v", n.Path, n.Owners, want)
			}
			if n.Inherited && structure.Has(n.Path) {
				t.Errorf("%v is taken for part of an atomic value", n.Path)
			}
		})
		if missed := structure.Difference(a.Present); !missed.Empty() {
			t.Errorf("not found: %v", missed)
		}
		for _, e := range entries {
			if there := a.Absent(e).Intersection(structure); !there.Empty() {
				t.Errorf("called absent: %v", there)
			}
		}
	})
}

// Without a schema whatever is owned has the same owners.
func TestAttributeWithoutSchemaFindsAllOwners(t *testing.T) {
	eachWorld(t, func(w *world) {
		entries := fieldowners.Parse(w.encoded())
		a := fieldowners.Attribute(w.live.AsValue().Unstructured().(map[string]any), entries, nil)
		found := map[string][]int{}
		eachNode(a.Root, func(n *fieldowners.Node) { found[fieldowners.FormatPath(n.Path)] = n.Owners })
		w.structure().Iterate(func(p fieldpath.Path) {
			if want := indices(entries, p); len(want) > 0 && !slices.Equal(found[fieldowners.FormatPath(p)], want) {
				t.Errorf("%v has owners %v, want %v", p, found[fieldowners.FormatPath(p)], want)
			}
		})
	})
}

// After everything was handed to one manager, its apply of other values conflicts with nobody.
func TestHandoverLeavesNoConflict(t *testing.T) {
	const heir = "m0"
	eachWorld(t, func(w *world) {
		before := w.encoded()
		everybody := func(fieldowners.Owner) bool { return true }
		after, err := fieldowners.Handover{From: everybody, To: heir}.Apply(before)
		if errors.Is(err, fieldowners.ErrNothing) {
			return
		}
		if err != nil || len(after) != 1 {
			t.Fatalf("%v entries, %v", after, err)
		}
		owned := fieldowners.Parse(after)[0].Fields
		for _, e := range fieldowners.Parse(before) {
			if lost := e.Fields.Difference(owned); !lost.Empty() {
				t.Errorf("%s's fields %v are lost", e.Owner, lost)
			}
		}
		managers := fieldpath.ManagedFields{heir: fieldpath.NewVersionedSet(owned, version, true)}
		other := w.typed(w.randomValue(w.root).(map[string]any))
		if _, _, err := w.updater.Apply(w.live, other, version, managers, heir, false); err != nil {
			t.Errorf("an apply of the heir: %v", err)
		}
	})
}

// A handover of some paths moves these and nothing else, and what one manager gets is what the other loses.
func TestHandoverOfPaths(t *testing.T) {
	eachWorld(t, func(w *world) {
		before := w.encoded()
		path := fieldpath.MakePathOrDie(fmt.Sprintf("f%d", w.rand.IntN(4)))
		from := func(o fieldowners.Owner) bool { return o.Manager == "m1" }
		after, err := fieldowners.Handover{From: from, Paths: []fieldpath.Path{path}, To: "heir"}.Apply(before)
		if errors.Is(err, fieldowners.ErrNothing) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range fieldowners.Diff(fieldowners.Parse(before), fieldowners.Parse(after)) {
			if names(m.Gained) != "heir" || names(m.Lost) != "m1" || !m.Path[0].Equals(path[0]) {
				t.Errorf("%v goes from %s to %s", m.Path, names(m.Lost), names(m.Gained))
			}
		}
	})
}
