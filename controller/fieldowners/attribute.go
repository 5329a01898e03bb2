package fieldowners

import (
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Node is one value of an object with those who own it.
type Node struct {
	// Path of the value; its last element is nothing for the object itself.
	Path fieldpath.Path
	// Key is the value's key when its parent is a map.
	Key string
	// Value as decoded from JSON.
	Value any
	// Owners are indices into the entries, ascending: the owners of exactly this path and, inside an atomic list or map,
	// those of the whole.
	Owners []int
	// Inherited is true inside an atomic list or map, whose parts have no owners of their own.
	Inherited bool
	// Children are the values of a map, sorted by key, or the items of a list in their order.
	Children []*Node
}

// IsLeaf reports whether the value has no parts: a scalar, null, or an empty list or map.
func (n *Node) IsLeaf() bool { return len(n.Children) == 0 }

// Attribution is an object with the owners of each of its values.
type Attribution struct {
	// Root is the object itself.
	Root *Node
	// Present are the paths of the object's values outside atomic lists and maps.
	Present *fieldpath.Set
}

// Absent returns the paths which an entry owns and the object does not have.
func (a Attribution) Absent(e Entry) *fieldpath.Set { return e.Fields.Difference(a.Present) }

// Attribute finds who owns each value of an object, by walking it along the entries' field sets; metadata.managedFields
// itself is left out. The items of a list are told apart by the kind of path element with which the entries name them.
//
// Field sets do not tell an atomic list or map from one that was applied while empty: {"f:strategy":{}} is both. structure,
// when it is not nil, is the set of all paths of the object by its schema (see Structure) and settles that; without
// it, the parts of what is owned and named no further count as owned with it.
func Attribute(object map[string]any, entries []Entry, structure *fieldpath.Set) Attribution {
	w := walker{Attribution{Root: &Node{Value: withoutManaged(object)}, Present: fieldpath.NewSet()}, structure != nil}
	p := place{structure: structure}
	for i, e := range entries {
		p.owned = append(p.owned, ownedSet{i, e.Fields})
	}
	w.descend(w.Root, p)
	return w.Attribution
}

// withoutManaged copies as much of an object as it takes to leave out metadata.managedFields.
func withoutManaged(object map[string]any) map[string]any {
	metadata, isMap := object["metadata"].(map[string]any)
	if !isMap {
		return object
	}
	object, metadata = maps.Clone(object), maps.Clone(metadata)
	delete(metadata, "managedFields")
	object["metadata"] = metadata
	return object
}

type walker struct {
	Attribution
	// hasSchema means that the structure tells of every list and map whether it is atomic, owned or not.
	hasSchema bool
}

// place is what is known of the paths below a value.
type place struct {
	owned     []ownedSet
	structure *fieldpath.Set
}

type ownedSet struct {
	entry  int
	fields *fieldpath.Set
}

// sets are all field sets of a place, those of the entries first.
func (p place) sets() []*fieldpath.Set {
	sets := make([]*fieldpath.Set, 0, len(p.owned)+1)
	for _, o := range p.owned {
		sets = append(sets, o.fields)
	}
	if p.structure != nil {
		sets = append(sets, p.structure)
	}
	return sets
}

// isGranular reports whether parts of the value have owners of their own.
func (p place) isGranular() bool { return len(p.owned) > 0 || p.structure != nil }

// below is the place of a part, with the entries that own exactly that part.
func (p place) below(e fieldpath.PathElement) (part place, owners []int) {
	for _, o := range p.owned {
		if o.fields.Members.Has(e) {
			owners = append(owners, o.entry)
		}
		if fields, found := o.fields.Children.Get(e); found && !fields.Empty() {
			part.owned = append(part.owned, ownedSet{o.entry, fields})
		}
	}
	if p.structure != nil {
		if fields, found := p.structure.Children.Get(e); found && !fields.Empty() {
			part.structure = fields
		}
	}
	return part, owners
}

func (w walker) descend(n *Node, p place) {
	switch v := n.Value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			w.child(n, p, fieldpath.FieldNameElement(key), key, v[key])
		}
	case []any:
		name := namerOf(p)
		for i, item := range v {
			w.child(n, p, name.element(item, i), "", item)
		}
	}
}

func (w walker) child(parent *Node, p place, e fieldpath.PathElement, key string, v any) {
	n := &Node{Path: append(slices.Clip(parent.Path), e), Key: key, Value: v}
	part, owners := p.below(e)
	n.Owners = owners
	if !p.isGranular() && len(parent.Path) > 0 && (w.hasSchema || len(parent.Owners) > 0) {
		n.Owners, n.Inherited = parent.Owners, true
	} else {
		w.Present.Insert(n.Path)
	}
	parent.Children = append(parent.Children, n)
	w.descend(n, part)
}

// namer finds the path element by which field sets name an item of one list.
type namer struct {
	sets []*fieldpath.Set
	// keys are the known elements with keys, tuples the distinct lists of the names in them.
	keys   []value.FieldList
	tuples [][]string
	values bool
}

func namerOf(p place) *namer {
	n := &namer{sets: p.sets()}
	seen := map[string]bool{}
	for _, set := range n.sets {
		for e := range set.Members.All() {
			n.learn(e, seen)
		}
		for e := range set.Children.All() {
			n.learn(e, seen)
		}
	}
	return n
}

func (n *namer) learn(e fieldpath.PathElement, seen map[string]bool) {
	n.values = n.values || e.Value != nil
	if e.Key == nil {
		return
	}
	n.keys = append(n.keys, *e.Key)
	names := make([]string, len(*e.Key))
	for i, f := range *e.Key {
		names[i] = f.Name
	}
	if id := strings.Join(names, "\x00"); !seen[id] {
		seen[id] = true
		n.tuples = append(n.tuples, names)
	}
}

// element names an item: by a known key or value, else as its list's other items are named, else by index.
func (n *namer) element(item any, index int) fieldpath.PathElement {
	candidates := n.candidates(item, index)
	for _, c := range candidates {
		if n.knows(c) {
			return c
		}
	}
	if fields, isMap := item.(map[string]any); isMap {
		for i := range n.keys {
			if fits(fields, n.keys[i]) {
				return fieldpath.PathElement{Key: &n.keys[i]}
			}
		}
	}
	return candidates[0]
}

func (n *namer) candidates(item any, index int) []fieldpath.PathElement {
	var found []fieldpath.PathElement
	if fields, isMap := item.(map[string]any); isMap {
		for _, names := range n.tuples {
			if e, ok := keyOf(fields, names); ok {
				found = append(found, e)
			}
		}
	} else if n.values {
		found = append(found, fieldpath.ValueElement(value.NewValueInterface(item)))
	}
	return append(found, fieldpath.IndexElement(index))
}

func (n *namer) knows(e fieldpath.PathElement) bool {
	return slices.ContainsFunc(n.sets, func(s *fieldpath.Set) bool {
		_, parent := s.Children.Get(e)
		return parent || s.Members.Has(e)
	})
}

func keyOf(fields map[string]any, names []string) (fieldpath.PathElement, bool) {
	key := make(value.FieldList, len(names))
	for i, name := range names {
		v, found := fields[name]
		if !found {
			return fieldpath.PathElement{}, false
		}
		key[i] = value.Field{Name: name, Value: value.NewValueInterface(v)}
	}
	return fieldpath.PathElement{Key: &key}, true
}

// fits reports whether an item which lacks parts of a key has the others: the API server fills in the schema's defaults.
func fits(fields map[string]any, key value.FieldList) bool {
	some := false
	for _, f := range key {
		v, found := fields[f.Name]
		if found && !value.Equals(value.NewValueInterface(v), f.Value) {
			return false
		}
		some = some || found
	}
	return some
}
