package fieldowners

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Value returns what an object, as decoded from JSON, has at a path; false where it has nothing, which is not the same as
// null.
func Value(object any, path fieldpath.Path) (any, bool) {
	for _, e := range path {
		var found bool
		if object, found = part(object, e); !found {
			return nil, false
		}
	}
	return object, true
}

func part(v any, e fieldpath.PathElement) (any, bool) {
	if e.FieldName != nil {
		fields, _ := v.(map[string]any)
		v, found := fields[*e.FieldName]
		return v, found
	}
	items, _ := v.([]any)
	i := slices.IndexFunc(items, func(item any) bool {
		if e.Value != nil {
			return value.Equals(value.NewValueInterface(item), *e.Value)
		}
		fields, isMap := item.(map[string]any)
		return isMap && e.Key != nil && fits(fields, *e.Key)
	})
	if e.Index != nil {
		i = *e.Index
	}
	if i < 0 || i >= len(items) {
		return nil, false
	}
	return items[i], true
}

// Spellings are paths by the way in which the API server writes them in a Conflict, where names with dots are not quoted and
// so cannot be parsed.
type Spellings map[string]fieldpath.Path

// NewSpellings knows every owned path, and those of the document that was applied: an object without managedFields conflicts
// with owners who are in no entry.
func NewSpellings(entries []Entry, document map[string]any) Spellings {
	s := Spellings{}
	add := func(p fieldpath.Path) { s[p.String()] = p.Copy() }
	Attribute(document, entries, nil).Present.Iterate(add)
	for _, e := range entries {
		e.Fields.Iterate(add)
	}
	return s
}

// Path gives the path that a conflict is about. One which neither is known nor can be read is the name of a single field.
func (s Spellings) Path(c Conflict) fieldpath.Path {
	if path, found := s[c.Path]; found {
		return path
	}
	if path, err := ParsePath(c.Path); err == nil {
		return path
	}
	return fieldpath.MakePathOrDie(c.Path)
}
