package ssa

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

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
	// fuller are the content's fields in which live says all that is wanted and yet is not the same, and surplus identifies
	// what it has more; see keeper. managedFields do not tell where that comes from.
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
	k := keeper{schema: c.typed.Schema()}
	comparison.Added.Union(comparison.Modified).Leaves().Difference(unowned).Iterate(func(p fieldpath.Path) {
		before, wanted, there := len(k.surplus), at(c.typed.AsValue(), p), at(extracted.AsValue(), p)
		if isMap(wanted) && isZero(wanted) && isZero(there) && isMap(at(live.AsValue(), p)) {
			return // an empty map is there, whoever owns what is in it
		}
		if !k.isKept(p.String(), typeAt(k.schema, c.typed.TypeRef(), p), wanted, there) {
			v.differing.Insert(p)
			k.surplus = k.surplus[:before]
		} else if len(k.surplus) > before {
			v.fuller.Insert(p)
		}
	})
	if len(k.surplus) > 0 {
		slices.Sort(k.surplus)
		v.surplus = digestOf(strings.Join(k.surplus, "\n"))
	}
	return v, nil
}

// keeper compares values, and notes what an apply might change in them although live says all that was wanted: what live has more
// within an atomic map or list, known defaults left out, and zeros of another sort. There the API server may have added
// or dropped something, and would again; or it is left of what was wanted before.
type keeper struct {
	schema  *schema.Schema
	surplus []string
}

// isKept reports whether live says what was wanted at a place, and perhaps more. Another writer that adds something to an atomic
// value takes it over, which shows in managedFields.
func (k *keeper) isKept(place string, ref schema.TypeRef, wanted, live value.Value) bool {
	switch {
	case isMap(wanted) && isMap(live):
		return k.isMapKept(place, ref, wanted.AsMap(), live.AsMap())
	case isZero(wanted) && isZero(live):
		if wanted != nil && live != nil && !value.Equals(wanted, live) {
			k.note(place, live)
		}
		return true
	case isZero(wanted) || isZero(live):
		return false
	case wanted.IsList() && live.IsList():
		w, l := wanted.AsList(), live.AsList()
		kept := w.Length() == l.Length()
		for i := 0; kept && i < w.Length(); i++ {
			kept = k.isKept(fmt.Sprintf("%s[%d]", place, i), itemType(k.schema, ref), w.At(i), l.At(i))
		}
		return kept
	}
	return value.Equals(wanted, live)
}

func (k *keeper) isMapKept(place string, ref schema.TypeRef, wanted, live value.Map) bool {
	kept := true
	wanted.Iterate(func(key string, v value.Value) bool {
		field, found := live.Get(key)
		if below := fmt.Sprintf("%s.%q", place, key); found {
			kept = k.isKept(below, fieldType(k.schema, ref, key), v, field)
		} else if kept = isZero(v); kept {
			k.note(below, nil)
		}
		return kept
	})
	live.Iterate(func(key string, v value.Value) bool {
		if !wanted.Has(key) && !isDefault(k.schema, ref, key, v) {
			k.note(fmt.Sprintf("%s.%q", place, key), v)
		}
		return true
	})
	return kept
}

func (k *keeper) note(place string, live value.Value) {
	text := "nothing"
	if live != nil {
		raw, err := json.Marshal(live.Unstructured())
		if text = string(raw); err != nil {
			text = err.Error()
		}
	}
	k.surplus = append(k.surplus, place+": "+text)
}

func isMap(v value.Value) bool { return v != nil && v.IsMap() }

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
		if i := indexOf(v.AsList(), e); i >= 0 {
			return v.AsList().At(i)
		}
	}
	return nil
}

// indexOf is where in a list the item is that a step names, -1 when it is not there.
func indexOf(list value.List, e fieldpath.PathElement) int {
	for _, defaults := range []bool{false, true} {
		for i := range list.Length() {
			if isItem(list.At(i), e, defaults) {
				return i
			}
		}
	}
	return -1
}

// isItem reports whether a list's item is the one that a step names. With defaults, key fields that the item leaves to their default
// fit too, whatever that is: look for an item that has them all first.
func isItem(item value.Value, e fieldpath.PathElement, defaults bool) bool {
	if e.Value != nil {
		return value.Equals(item, *e.Value)
	}
	return e.Key != nil && item.IsMap() && !slices.ContainsFunc(*e.Key, func(k value.Field) bool {
		v, ok := item.AsMap().Get(k.Name)
		return ok && !value.Equals(v, k.Value) || !ok && !defaults
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
