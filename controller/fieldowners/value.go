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

// Spellings maps every owned path as the API server writes it in a Conflict, where names with dots are not quoted and so
// cannot be parsed, to the path itself.
func Spellings(entries []Entry) map[string]fieldpath.Path {
	paths := map[string]fieldpath.Path{}
	for _, e := range entries {
		e.Fields.Iterate(func(p fieldpath.Path) { paths[p.String()] = p.Copy() })
	}
	return paths
}
