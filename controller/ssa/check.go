package ssa

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hduolab/quell/controller/fieldowners"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
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
	reasons := missingReasons(missing, entries)
	reasons = appendPaths(reasons, Changed, differing.Difference(missing))
	reasons = appendPaths(reasons, Removed, owned.Difference(c.fields))
	if found && len(reasons) == 0 && mine.APIVersion != owner.APIVersion {
		reasons = append(reasons, Reason{Change: Changed, Path: ".apiVersion"})
	}
	sortReasons(reasons)
	return reasons, nil
}

// differingValues is the set of the content's fields that live lacks or has with other values.
func differingValues(c *content, live *typed.TypedValue) (*fieldpath.Set, error) {
	comparison, err := live.ExtractItems(c.fields.Leaves(), typed.WithAppendKeyFields()).Compare(c.typed)
	if err != nil {
		return nil, fmt.Errorf("compare with live object: %w", err)
	}
	return comparison.Added.Union(comparison.Modified).Leaves().Difference(unowned), nil
}

func missingReasons(missing *fieldpath.Set, entries []fieldowners.Entry) []Reason {
	var reasons []Reason
	missing.Leaves().Iterate(func(p fieldpath.Path) {
		r := Reason{Change: Added, Path: p.String(), Owners: fieldowners.OwnersOf(entries, p)}
		if len(r.Owners) > 0 {
			r.Change = Taken
		}
		reasons = append(reasons, r)
	})
	return reasons
}

func appendPaths(reasons []Reason, change Change, paths *fieldpath.Set) []Reason {
	paths.Leaves().Iterate(func(p fieldpath.Path) {
		reasons = append(reasons, Reason{Change: change, Path: p.String()})
	})
	return reasons
}

func sortReasons(reasons []Reason) {
	slices.SortFunc(reasons, func(a, b Reason) int { return cmp.Compare(a.Path, b.Path) })
}
