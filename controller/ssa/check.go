package ssa

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hduolab/quell/controller/fieldowners"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// difference tells why applying content would change the live object, nil when it would not: the owner's entry has exactly
// the content's fields, and the live values of these fields equal the content's. Values and sets are compared as the API
// server's merge does (sigs.k8s.io/structured-merge-diff/v6): list items by key, numbers by value.
func difference(c *content, live *typed.TypedValue, entries []fieldowners.Entry, owner fieldowners.Owner) ([]Reason, error) {
	owned := fieldpath.NewSet()
	mine, found := fieldowners.Find(entries, owner)
	if found {
		owned = mine.Fields
	}
	differing, err := differingValues(c, live)
	if err != nil {
		return nil, err
	}
	missing := c.fields.Difference(owned)
	reasons := missingReasons(missing, differing, entries)
	reasons = appendPaths(reasons, Changed, differing.Difference(missing))
	reasons = appendPaths(reasons, Removed, owned.Difference(c.fields))
	if found && len(reasons) == 0 && mine.APIVersion != owner.APIVersion {
		reasons = append(reasons, Reason{Change: Changed, Path: ".apiVersion"})
	}
	sortReasons(reasons)
	return reasons, nil
}

// differingValues is the set of the content's fields that live lacks or has with other values. A zero value is the same as
// none: Go types with omitempty cannot tell them apart, so neither can a typed cache, and built-in kinds do not keep it. That
// somebody removed a zero of ours shows in managedFields all the same.
func differingValues(c *content, live *typed.TypedValue) (*fieldpath.Set, error) {
	extracted := live.ExtractItems(c.fields.Leaves(), typed.WithAppendKeyFields())
	comparison, err := extracted.Compare(c.typed)
	if err != nil {
		return nil, fmt.Errorf("compare with live object: %w", err)
	}
	differing := fieldpath.NewSet()
	comparison.Added.Union(comparison.Modified).Leaves().Difference(unowned).Iterate(func(p fieldpath.Path) {
		if !isKept(at(c.typed.AsValue(), p), at(extracted.AsValue(), p)) {
			differing.Insert(p)
		}
	})
	return differing, nil
}

// isKept reports whether live says what was wanted. Within an atomic map or list the API server may have added defaults, as it
// would again; another writer that adds something to it takes it over, which shows in managedFields.
func isKept(wanted, live value.Value) bool {
	switch {
	case isZero(wanted):
		return isZero(live)
	case isZero(live):
		return false
	case wanted.IsMap() && live.IsMap():
		kept := true
		wanted.AsMap().Iterate(func(key string, v value.Value) bool {
			field, _ := live.AsMap().Get(key)
			kept = isKept(v, field)
			return kept
		})
		return kept
	case wanted.IsList() && live.IsList():
		w, l := wanted.AsList(), live.AsList()
		kept := w.Length() == l.Length()
		for i := 0; kept && i < w.Length(); i++ {
			kept = isKept(w.At(i), l.At(i))
		}
		return kept
	}
	return value.Equals(wanted, live)
}

// isZero reports whether v is an empty map, list or string, false, 0, null or nothing.
func isZero(v value.Value) bool {
	switch {
	case v == nil || v.IsNull():
		return true
	case v.IsMap():
		return v.AsMap().Empty()
	case v.IsList():
		return v.AsList().Length() == 0
	case v.IsString():
		return v.AsString() == ""
	case v.IsBool():
		return !v.AsBool()
	case v.IsInt():
		return v.AsInt() == 0
	}
	return v.IsFloat() && v.AsFloat() == 0
}

// at is the value at a path, nil when there is none.
func at(v value.Value, path fieldpath.Path) value.Value {
	for _, e := range path {
		if v == nil {
			return nil
		}
		v = child(v, e)
	}
	return v
}

// child is the value that one step of a path leads to, nil when there is none.
func child(v value.Value, e fieldpath.PathElement) value.Value {
	switch {
	case e.FieldName != nil && v.IsMap():
		field, _ := v.AsMap().Get(*e.FieldName)
		return field
	case v.IsList():
		for i := range v.AsList().Length() {
			if item := v.AsList().At(i); isItem(item, e) {
				return item
			}
		}
	}
	return nil
}

// isItem reports whether a list's item is the one that a step names. Key fields that the item leaves to their default fit.
func isItem(item value.Value, e fieldpath.PathElement) bool {
	if e.Value != nil {
		return value.Equals(item, *e.Value)
	}
	return e.Key != nil && item.IsMap() && !slices.ContainsFunc(*e.Key, func(k value.Field) bool {
		v, ok := item.AsMap().Get(k.Name)
		return ok && !value.Equals(v, k.Value)
	})
}

func missingReasons(missing, differing *fieldpath.Set, entries []fieldowners.Entry) []Reason {
	var reasons []Reason
	missing.Leaves().Iterate(func(p fieldpath.Path) {
		r := Reason{Change: Added, Path: fieldowners.FormatPath(p), Owners: fieldowners.OwnersOf(entries, p)}
		switch {
		case len(r.Owners) > 0 && differing.Has(p):
			r.Change = Taken
		case len(r.Owners) > 0:
			r.Change = Shared
		}
		reasons = append(reasons, r)
	})
	return reasons
}

func appendPaths(reasons []Reason, change Change, paths *fieldpath.Set) []Reason {
	paths.Leaves().Iterate(func(p fieldpath.Path) {
		reasons = append(reasons, Reason{Change: change, Path: fieldowners.FormatPath(p)})
	})
	return reasons
}

func sortReasons(reasons []Reason) {
	slices.SortFunc(reasons, func(a, b Reason) int { return cmp.Compare(a.Path, b.Path) })
}
