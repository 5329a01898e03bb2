package ssa

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hduolab/quell/controller/fieldowners"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// difference tells why applying content would change the live object, nil when it would not: the owner's entry has exactly
// the content's fields, and the live values of these fields equal the content's. Values and sets are compared as the API
// server's merge does (sigs.k8s.io/structured-merge-diff/v6): list items by key, numbers by value. surplus is what live had more
// when the content was last known to be in place, the zero digest when that is not known.
func difference(c *content, live *typed.TypedValue, entries []fieldowners.Entry, owner fieldowners.Owner, surplus digest) ([]Reason, error) {
	owned := fieldpath.NewSet()
	mine, found := fieldowners.Find(entries, owner)
	if found {
		owned = mine.Fields
	}
	v, err := compare(c, live)
	if err != nil {
		return nil, err
	}
	differing := v.differing
	if v.surplus != surplus {
		differing = differing.Union(v.fuller)
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

// values is how the values of a live object differ from the content's.
type values struct {
	// differing are the content's fields that live lacks or has with other values.
	differing *fieldpath.Set
	// fuller are the content's atomic fields in which live has more than is wanted, and surplus identifies what that is. The API
	// server may have added it, being defaults, or it is left of what was wanted before: managedFields do not tell.
	fuller  *fieldpath.Set
	surplus digest
}

// compare compares values. A zero value is the same as none: Go types with omitempty cannot tell them apart, so neither can a typed
// cache, and built-in kinds do not keep it. That somebody removed a zero of ours shows in managedFields all the same.
func compare(c *content, live *typed.TypedValue) (values, error) {
	v := values{differing: fieldpath.NewSet(), fuller: fieldpath.NewSet()}
	extracted := live.ExtractItems(c.fields.Leaves(), typed.WithAppendKeyFields())
	comparison, err := extracted.Compare(c.typed)
	if err != nil {
		return v, fmt.Errorf("compare with live object: %w", err)
	}
	surplus := ""
	comparison.Added.Union(comparison.Modified).Leaves().Difference(unowned).Iterate(func(p fieldpath.Path) {
		k := keeper{schema: c.typed.Schema()}
		if !k.isKept(typeAt(c.typed.Schema(), c.typed.TypeRef(), p), at(c.typed.AsValue(), p), at(extracted.AsValue(), p)) {
			v.differing.Insert(p)
		} else if k.surplus != "" {
			v.fuller.Insert(p)
			surplus += p.String() + k.surplus
		}
	})
	if surplus != "" {
		v.surplus = digestOf(surplus)
	}
	return v, nil
}

// keeper compares the parts of one atomic map or list, and notes what live has more than is wanted, known defaults left out.
type keeper struct {
	schema  *schema.Schema
	surplus string
}

// isKept reports whether live says what was wanted, and perhaps more. Another writer that adds something to an atomic value takes
// it over, which shows in managedFields.
func (k *keeper) isKept(ref schema.TypeRef, wanted, live value.Value) bool {
	switch {
	case isZero(wanted):
		return isZero(live)
	case isZero(live):
		return false
	case wanted.IsMap() && live.IsMap():
		return k.isMapKept(ref, wanted.AsMap(), live.AsMap())
	case wanted.IsList() && live.IsList():
		w, l := wanted.AsList(), live.AsList()
		kept := w.Length() == l.Length()
		for i := 0; kept && i < w.Length(); i++ {
			kept = k.isKept(itemType(k.schema, ref), w.At(i), l.At(i))
		}
		return kept
	}
	return value.Equals(wanted, live)
}

func (k *keeper) isMapKept(ref schema.TypeRef, wanted, live value.Map) bool {
	kept := true
	wanted.Iterate(func(key string, v value.Value) bool {
		field, _ := live.Get(key)
		kept = k.isKept(fieldType(k.schema, ref, key), v, field)
		return kept
	})
	live.Iterate(func(key string, v value.Value) bool {
		if !wanted.Has(key) && !isZero(v) && !isDefault(k.schema, ref, key, v) {
			k.surplus += fmt.Sprintf(".%q:%s", key, value.ToString(v))
		}
		return true
	})
	return kept
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
