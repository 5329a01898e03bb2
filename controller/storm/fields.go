package storm

import (
	"encoding/json"
	"reflect"
	"slices"
	"sort"

	"github.com/hduolab/quell/controller/fieldowners"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// fieldChange is a field that differs between two versions.
type fieldChange struct {
	path          fieldpath.Path
	name          string
	step          step
	before, after shown
}

// maxChanges is how many changed fields of one version are kept.
const maxChanges = 8

// comparison finds the fields that differ. What the API server itself moves with every write is left out.
type comparison struct {
	resource schema.GroupResource
	changes  []fieldChange
	// more is how many changes there were beyond maxChanges.
	more int
}

// compare gives the differences of two versions, in which list items are told apart as the entries name them.
func (c *comparison) compare(older, newer map[string]any, was, is []fieldowners.Entry) {
	old, current, differs := reduce(withoutBookkeeping(older), withoutBookkeeping(newer))
	if !differs {
		return
	}
	entries := slices.Concat(was, is)
	before, after := fieldowners.Attribute(old, entries, nil), fieldowners.Attribute(current, entries, nil)
	c.nodes(before.Root, after.Root)
}

func withoutBookkeeping(object map[string]any) map[string]any {
	metadata, isMap := object["metadata"].(map[string]any)
	if !isMap {
		return object
	}
	kept, rest := map[string]any{}, map[string]any{}
	for k, v := range object {
		kept[k] = v
	}
	for k, v := range metadata {
		if k != "managedFields" && k != "resourceVersion" && k != "generation" {
			rest[k] = v
		}
	}
	kept["metadata"] = rest
	return kept
}

// reduce leaves only what differs: naming all values of an object by their entries would cost far more.
func reduce(a, b map[string]any) (old, current map[string]any, differs bool) {
	old, current = map[string]any{}, map[string]any{}
	for k, v := range a {
		w, found := b[k]
		if !found {
			old[k] = v
			continue
		}
		below, isMap := v.(map[string]any)
		other, isOther := w.(map[string]any)
		if isMap && isOther && len(below) > 0 && len(other) > 0 {
			if x, y, differs := reduce(below, other); differs {
				old[k], current[k] = x, y
			}
		} else if !reflect.DeepEqual(v, w) {
			old[k], current[k] = v, w
		}
	}
	for k, v := range b {
		if _, found := a[k]; !found {
			current[k] = v
		}
	}
	return old, current, len(old)+len(current) > 0
}

func (c *comparison) nodes(before, after *fieldowners.Node) {
	if reflect.DeepEqual(before.Value, after.Value) {
		return
	}
	was, wasList := before.Value.([]any)
	is, isList := after.Value.([]any)
	switch {
	case wasList && isList && isPermutation(was, is):
		c.add(after, stepOrder, before.Value, after.Value)
	case wasList && isList && len(was) > 0 && len(is) > len(was) && reflect.DeepEqual(was, is[:len(was)]):
		c.add(after, stepLonger, before.Value, after.Value)
	case before.IsLeaf() && after.IsLeaf() || isKind(before.Value) != isKind(after.Value):
		c.add(after, stepOf(before.Value, after.Value), before.Value, after.Value)
	default:
		c.children(before, after)
	}
}

// isKind tells maps, lists and scalars apart.
func isKind(v any) reflect.Kind {
	switch v.(type) {
	case map[string]any:
		return reflect.Map
	case []any:
		return reflect.Slice
	}
	return reflect.Invalid
}

func (c *comparison) children(before, after *fieldowners.Node) {
	old := map[string]*fieldowners.Node{}
	for _, n := range before.Children {
		old[n.Path.String()] = n
	}
	for _, n := range after.Children {
		path := n.Path.String()
		if o, found := old[path]; found {
			c.nodes(o, n)
			delete(old, path)
			continue
		}
		c.record(fieldChange{path: n.Path, step: stepAdded, before: absent, after: c.show(n)})
	}
	for _, n := range before.Children {
		if _, gone := old[n.Path.String()]; gone {
			c.record(fieldChange{path: n.Path, step: stepRemoved, before: c.show(n), after: absent})
		}
	}
}

func (c *comparison) add(n *fieldowners.Node, how step, before, after any) {
	hidden := c.isHidden(n.Path)
	c.record(fieldChange{path: n.Path, step: how, before: show(before, hidden), after: show(after, hidden)})
}

func (c *comparison) show(n *fieldowners.Node) shown { return show(n.Value, c.isHidden(n.Path)) }

// isHidden keeps the content of Secrets out of every report.
func (c *comparison) isHidden(path fieldpath.Path) bool {
	if c.resource != (schema.GroupResource{Resource: "secrets"}) || len(path) == 0 || path[0].FieldName == nil {
		return false
	}
	if name := *path[0].FieldName; name == "metadata" {
		return len(path) > 1 && path[1].FieldName != nil && *path[1].FieldName == "annotations"
	}
	return true
}

func (c *comparison) record(change fieldChange) {
	if len(c.changes) >= maxChanges {
		c.more++
		return
	}
	change.name = fieldowners.FormatPath(change.path)
	c.changes = append(c.changes, change)
}

// compareOwners gives the fields whose owners differ, which is all that metadata tell of them.
func (c *comparison) compareOwners(was, is []fieldowners.Entry) {
	for _, m := range fieldowners.Diff(was, is) {
		change := fieldChange{path: m.Path, step: stepTaken, before: absent, after: absent}
		if len(m.Lost) > 0 {
			change.before = show(m.Lost[0].Manager, false)
		} else {
			change.step = stepAdded
		}
		if len(m.Gained) > 0 {
			change.after = show(m.Gained[0].Manager, false)
		} else {
			change.step = stepRemoved
		}
		if change.before.digest != change.after.digest {
			c.record(change)
		}
	}
}

func isPermutation(a, b []any) bool {
	return len(a) == len(b) && slices.Equal(sortedJSON(a), sortedJSON(b))
}

func sortedJSON(items []any) []string {
	texts := make([]string, len(items))
	for i, item := range items {
		raw, err := json.Marshal(item)
		if err != nil {
			return nil
		}
		texts[i] = string(raw)
	}
	sort.Strings(texts)
	return texts
}
