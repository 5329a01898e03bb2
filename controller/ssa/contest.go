package ssa

import (
	"slices"

	"github.com/hduolab/quell/controller/fieldowners"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// contest is a field of the content that others own with another value. path is nil where text alone is known, from the API server: the
// content has no such field, or two of that text.
type contest struct {
	path   fieldpath.Path
	text   string
	owners []fieldowners.Owner
}

// contested are the fields for which the API server would answer an apply of the content, without force, with a conflict: others
// own them, and merging the content would change them (sigs.k8s.io/structured-merge-diff/v6, merge/update.go). An empty map is
// merged into one that others filled without a change. Unless live is exact, in which no field is left out that the API server has, a
// zero is taken for the same as none, and whether the content begins a map is left to the API server's answer. Metadata is always exact.
func contested(c *content, live *typed.TypedValue, exact bool, entries []fieldowners.Entry, owner fieldowners.Owner) []contest {
	theirs := slices.DeleteFunc(slices.Clone(entries), func(e fieldowners.Entry) bool { return e.Same(owner) })
	owned := fieldpath.NewSet()
	for _, e := range theirs {
		owned = owned.Union(e.Fields)
	}
	var found []contest
	leaves := c.fields.Leaves()
	changedBy(c, live).Intersection(owned).Iterate(func(p fieldpath.Path) {
		if exact || isMetadata(p) || leaves.Has(p) && !isSame(at(c.typed.AsValue(), p), at(live.AsValue(), p)) {
			found = append(found, contest{p.Copy(), fieldowners.FormatPath(p), fieldowners.OwnersOf(theirs, p)})
		}
	})
	return found
}

// isMetadata reports whether a field is one of metav1.ObjectMeta, which the API server keeps of every kind as that type writes it.
func isMetadata(p fieldpath.Path) bool { return p[0].FieldName != nil && *p[0].FieldName == "metadata" }

// changedBy are the paths of live that a merge of the content changes, with the maps that it begins; all that the content has where the
// two cannot be merged.
func changedBy(c *content, live *typed.TypedValue) *fieldpath.Set {
	merged, err := live.Merge(c.typed)
	if err != nil {
		return c.fields.Leaves()
	}
	comparison, err := live.Compare(merged)
	if err != nil {
		return c.fields.Leaves()
	}
	return comparison.Added.Union(comparison.Modified).Difference(unowned)
}

// isSame is stricter than isKept: in an atomic map or list even a default that was added is a difference to the API server.
func isSame(wanted, live value.Value) bool {
	if isZero(wanted) || isZero(live) {
		return isZero(wanted) && isZero(live)
	}
	return value.Equals(wanted, live)
}

// obey treats the fields of the content that others own with other values by their rules. It returns true when nothing is to
// be sent at all.
func (c *call) obey(live *typed.TypedValue, exact bool) (bool, error) {
	if c.Rules.forceAll() {
		return false, nil
	}
	contests := contested(c.content, live, exact, c.entries, c.owner())
	borrowed, err := c.borrowedTimes(contests)
	if err != nil {
		return false, err
	}
	_, done, err := c.rule(append(contests, borrowed...))
	return done, err
}

// borrowedTimes are the transition times under rule Yield that only others own and that are no contests: a StatusWriter takes these
// over from live, so they say nothing of its own. Stated, such a time would be ours too until the next transition, then be left to
// them, and be ours again at the call after that.
func (c *call) borrowedTimes(contests []contest) ([]contest, error) {
	if c.complete == nil {
		return nil, nil
	}
	rules, err := c.Rules.read()
	if err != nil {
		return nil, err
	}
	var found []contest
	c.fields.Leaves().Iterate(func(p fieldpath.Path) {
		if !isTransitionTime(p) || rules.of(p) != Yield || slices.ContainsFunc(contests, func(x contest) bool { return x.path.Equals(p) }) {
			return
		}
		owners := fieldowners.OwnersOf(c.entries, p)
		if len(owners) > 0 && !slices.ContainsFunc(owners, c.owner().Same) {
			found = append(found, contest{p.Copy(), fieldowners.FormatPath(p), owners})
		}
	})
	return found, nil
}

// rule settles contests: one under rule Report ends the call, those under Yield leave the content. It tells whether some are
// left that are to be forced.
func (c *call) rule(contests []contest) (forced, done bool, err error) {
	rules, err := c.Rules.read()
	if err != nil {
		return false, false, err
	}
	var yields, reports, unnamed []contest
	for _, x := range contests {
		if x.path == nil {
			unnamed = append(unnamed, x)
			continue
		}
		switch rules.strictest(x.path) {
		case Report:
			reports = append(reports, x)
		case Yield:
			yields = append(yields, x)
		default:
			forced = true
		}
	}
	if err := c.yield(yields); err != nil {
		return false, false, err
	}
	if len(unnamed) > 0 {
		forcing, err := c.forcesAllChanges(rules)
		if err != nil {
			return false, false, err
		}
		if forcing {
			forced = true
		} else {
			reports = append(reports, unnamed...)
		}
	}
	if len(reports) == 0 {
		return forced, false, nil
	}
	c.result.Outcome, c.result.RetryAfter, c.result.Conflicts = Conflicted, 0, conflicts(reports)
	return false, true, nil
}

// forcesAllChanges reports whether all that an apply of the content would change may be taken. It rules contests over fields that have
// another name in the version in which their owner wrote them: which of ours they are is not known, so none of these can be left out.
func (c *call) forcesAllChanges(rules verdicts) (bool, error) {
	changes := c.begins()
	if c.Live != nil {
		live, _, err := c.typedOf(c.Live)
		if err != nil {
			return false, err
		}
		changes = changedBy(c.content, live)
	}
	if mine, found := fieldowners.Find(c.entries, c.owner()); found {
		changes = changes.Union(mine.Fields.Difference(c.fields))
	}
	forcing := true
	changes.Iterate(func(p fieldpath.Path) { forcing = forcing && rules.strictest(p) == Force })
	return forcing, nil
}

// conflicts are contests in the words of the API server, which does not tell the API version of an applier.
func conflicts(contests []contest) []fieldowners.Conflict {
	var list []fieldowners.Conflict
	for _, x := range contests {
		for _, o := range x.owners {
			if o.Operation == metav1.ManagedFieldsOperationApply {
				o.APIVersion = ""
			}
			list = append(list, fieldowners.Conflict{Owner: o, Path: x.text})
		}
	}
	return list
}

// yield leaves fields out of the content. Its digest stays: it is that of what the caller wants.
func (c *call) yield(contests []contest) error {
	if len(contests) == 0 {
		return nil
	}
	var object any = c.object.Object
	for _, x := range contests {
		object = cut(object, x.path)
		c.result.Yielded = append(c.result.Yielded, Reason{Change: Yielded, Path: x.text, Owners: x.owners})
	}
	sortReasons(c.result.Yielded)
	reduced, err := newContent(&unstructured.Unstructured{Object: object.(map[string]any)}, c.opts.Types, c.opts.Subresource)
	if err != nil {
		return err
	}
	reduced.digest = c.digest
	c.content = reduced
	return nil
}

// cut returns v without what a path leads to, and without maps that are empty then: an empty map would be a field of its own.
// An item goes with its key, which nobody can have with another value: it would be another item. v is not changed.
func cut(v any, path fieldpath.Path) any {
	switch parent := v.(type) {
	case map[string]any:
		name := *path[0].FieldName
		if _, found := parent[name]; !found {
			return v
		}
		if len(path) == 1 {
			return without(v, name)
		}
		part := cut(parent[name], path[1:])
		if m, ok := part.(map[string]any); ok && len(m) == 0 {
			return without(v, name)
		}
		return with(parent, name, part)
	case []any:
		i := indexOf(value.NewValueInterface(parent).AsList(), path[0])
		switch {
		case i < 0:
			return v
		case len(path) == 1, len(path) == 2 && isKey(path[1], path[0]): // one that live has twice can only be owned as a whole
			return slices.Delete(slices.Clone(parent), i, i+1)
		}
		items := slices.Clone(parent)
		items[i] = cut(items[i], path[1:])
		return items
	}
	return v
}

// isKey reports whether a field belongs to the key of the item that it is in.
func isKey(field, item fieldpath.PathElement) bool {
	return item.Key != nil && field.FieldName != nil && slices.ContainsFunc(*item.Key, func(k value.Field) bool { return k.Name == *field.FieldName })
}

// added counts the reasons of after for paths that before does not have.
func added(after, before []Reason) int {
	n := 0
	for _, r := range after {
		if !slices.ContainsFunc(before, func(b Reason) bool { return b.Path == r.Path }) {
			n++
		}
	}
	return n
}

// begins are all paths that the content has and an object without any does not: also maps, and empty lists, which are no fields of ours.
func (c *content) begins() *fieldpath.Set {
	nothing, err := typed.AsTyped(value.NewValueInterface(map[string]any{}), c.typed.Schema(), c.typed.TypeRef())
	if err != nil {
		return c.fields
	}
	comparison, err := nothing.Compare(c.typed)
	if err != nil {
		return c.fields
	}
	return comparison.Added
}

// named finds the content's fields for which the API server told conflicts. It does not quote names, so that two paths can have one
// text; whose rule counts is not known then.
func (c *call) named(list []fieldowners.Conflict) []contest {
	paths := map[string]fieldpath.Path{}
	c.begins().Iterate(func(p fieldpath.Path) {
		if _, twice := paths[p.String()]; twice {
			paths[p.String()] = nil
		} else {
			paths[p.String()] = p.Copy()
		}
	})
	index := map[string]int{}
	var found []contest
	for _, conflict := range list {
		i, known := index[conflict.Path]
		if !known {
			i, index[conflict.Path] = len(found), len(found)
			x := contest{path: paths[conflict.Path], text: conflict.Path}
			if x.path != nil {
				x.text = fieldowners.FormatPath(x.path)
			}
			found = append(found, x)
		}
		found[i].owners = append(found[i].owners, conflict.Owner)
	}
	return found
}
