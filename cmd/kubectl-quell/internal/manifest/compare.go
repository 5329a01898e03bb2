package manifest

import (
	"encoding/base64"
	"reflect"
	"slices"
	"strings"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/cluster"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/controller/fieldowners"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Causes why an apply is no no-op, or why a value comes back otherwise than it is sent.
const (
	created      = "Created"
	conflicting  = "Conflict"
	changed      = "Changed"
	added        = "Added"
	removed      = "Removed"
	reordered    = "Reordered"
	defaulted    = "Defaulted"
	normalised   = "Normalised"
	pruned       = "Pruned"
	byServer     = "ChangedByServer"
	ignored      = "Ignored"
	newlyOwned   = "NewlyOwned"
	released     = "Released"
	otherVersion = "APIVersion"
	unexplained  = "Unexplained"
)

// explanations say in words what a cause is.
var explanations = map[string]string{
	created:      "the object does not exist yet",
	conflicting:  "another manager owns it with another value, so the apply is refused",
	changed:      "your value is not the live one",
	added:        "you send it, and the live object does not have it",
	removed:      "you own it and do not send it any more",
	reordered:    "the same items in another order",
	defaulted:    "you send nothing or {}, and it is filled in: by a default, admission or other managers",
	normalised:   "the API server writes your value in another form",
	pruned:       "you send it, and the API server drops it, every time: it is not in the schema",
	byServer:     "the API server sets another value than yours: admission, or a controller of the field",
	ignored:      "an apply to this endpoint leaves it out",
	newlyOwned:   "you do not own it yet, or not through this operation",
	released:     "you own it and do not send it any more; another owner keeps it",
	otherVersion: "your entry is in another API version, and changes with each apply in this one",
	unexplained:  "the API server would write although nothing that can be seen differs",
}

// Finding is a path that keeps an apply from being a no-op, or a remark.
type Finding struct {
	Path  string `json:"path,omitempty"`
	Cause string `json:"cause"`
	// Explanation of the cause in words.
	Explanation string `json:"explanation"`
	// Sent, Live and Result are your value, the live one, and what the apply would make of it; absent where there is none.
	Sent   any `json:"sent,omitempty"`
	Live   any `json:"live,omitempty"`
	Result any `json:"result,omitempty"`

	isSent, isLive, isResult bool
}

// comparison is one apply: what is sent, what is there, and what the dry run made of it.
type comparison struct {
	apply              cluster.Apply
	sent, live, result *unstructured.Unstructured
	before, after      []fieldowners.Entry
	// structure gives a structure for fieldowners.Attribute, or nil.
	structure func(*unstructured.Unstructured) *fieldpath.Set

	findings, remarks []Finding
	// explained are the paths that need no further word.
	explained map[string]bool
}

// consequences of a write are not its cause.
var consequences = fieldpath.NewSet(
	fieldpath.MakePathOrDie("metadata", "resourceVersion"),
	fieldpath.MakePathOrDie("metadata", "generation"),
	fieldpath.MakePathOrDie("metadata", "managedFields"),
)

func (c *comparison) run() {
	c.before, c.after = fieldowners.Parse(c.live.GetManagedFields()), fieldowners.Parse(c.result.GetManagedFields())
	c.explained = map[string]bool{}
	c.values()
	c.sentButChanged()
	c.ownership()
	if len(c.findings) == 0 && c.moved() {
		c.add(&c.findings, nil, unexplained)
	}
}

// wholes flattens an object to what is compared as a whole: leaves, and atomic lists and maps; and to its lists.
func (c *comparison) wholes(u *unstructured.Unstructured) (wholes, lists map[string]*fieldowners.Node) {
	wholes, lists = map[string]*fieldowners.Node{}, map[string]*fieldowners.Node{}
	var walk func(n *fieldowners.Node)
	walk = func(n *fieldowners.Node) {
		if n.IsLeaf() || n.Children[0].Inherited {
			wholes[fieldowners.FormatPath(n.Path)] = n
			return
		}
		if _, isList := n.Value.([]any); isList {
			lists[fieldowners.FormatPath(n.Path)] = n
		}
		for _, child := range n.Children {
			walk(child)
		}
	}
	walk(fieldowners.Attribute(u.Object, c.after, c.structure(u)).Root)
	return wholes, lists
}

// values finds what the apply would change.
func (c *comparison) values() {
	live, liveLists := c.wholes(c.live)
	result, resultLists := c.wholes(c.result)
	for _, path := range sortedUnion(live, result) {
		before, after := live[path], result[path]
		node := after
		if node == nil {
			node = before
		}
		isSame := before != nil && after != nil && reflect.DeepEqual(before.Value, after.Value)
		if !isSame && !consequences.Has(node.Path) && !isInParts(node.Path, before, after, c.live.Object, c.result.Object) {
			c.add(&c.findings, node.Path, c.causeOf(node.Path))
		}
	}
	for path, before := range liveLists {
		if after := resultLists[path]; after != nil && isPermuted(before, after) {
			c.add(&c.findings, before.Path, reordered)
		}
	}
}

// isInParts reports whether a path which is a whole in one of two objects, such as an empty map, has parts in the other, which
// are looked at one by one.
func isInParts(path fieldpath.Path, before, after *fieldowners.Node, live, result map[string]any) bool {
	if before != nil && after != nil {
		return false
	}
	_, isLive := fieldowners.Value(live, path)
	_, isResult := fieldowners.Value(result, path)
	return isLive && isResult
}

// isEmpty reports whether a value is a list or map without parts.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// isZero reports whether a value is one that Kubernetes' own types may leave out.
func isZero(v any) bool {
	return v == nil || isEmpty(v) || reflect.ValueOf(v).IsZero()
}

func sortedUnion(a, b map[string]*fieldowners.Node) []string {
	var paths []string
	for path := range a {
		paths = append(paths, path)
	}
	for path := range b {
		if a[path] == nil {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// isPermuted reports whether the items that two lists have in common are in different orders.
func isPermuted(a, b *fieldowners.Node) bool {
	place := map[string]int{}
	for i, item := range a.Children {
		place[fieldowners.FormatPath(item.Path)] = i
	}
	last := -1
	for _, item := range b.Children {
		i, found := place[fieldowners.FormatPath(item.Path)]
		if found && i < last {
			return true
		}
		if found {
			last = i
		}
	}
	return false
}

// causeOf tells why a value would change.
func (c *comparison) causeOf(path fieldpath.Path) string {
	sent, isSent := c.sentAt(path)
	live, isLive := fieldowners.Value(c.live.Object, path)
	result, isResult := fieldowners.Value(c.result.Object, path)
	switch {
	case isSent && isResult && isEqual(sent, result):
		if !isLive {
			return added
		}
		if isReordered(live, result) {
			return reordered
		}
		return changed
	case isSent && isResult:
		return serverCause(sent, result)
	case isSent:
		return pruned
	case !isResult && c.owned(path):
		return removed
	case isResult && (!isLive || c.owned(path)):
		return defaulted
	}
	return byServer
}

// sentAt is what was sent for a path. The API server writes a Secret's stringData into its data.
func (c *comparison) sentAt(path fieldpath.Path) (any, bool) {
	sent, found := fieldowners.Value(c.sent.Object, path)
	if found || !isSecret(c.sent) || len(path) != 2 || *path[0].FieldName != "data" {
		return sent, found
	}
	text, found, err := unstructured.NestedString(c.sent.Object, "stringData", *path[1].FieldName)
	return base64.StdEncoding.EncodeToString([]byte(text)), found && err == nil
}

func isSecret(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind().GroupKind() == corev1.SchemeGroupVersion.WithKind("Secret").GroupKind()
}

func serverCause(sent, result any) string {
	switch {
	case isNormalised(sent, result):
		return normalised
	case isFilledIn(sent, result):
		return defaulted
	}
	return byServer
}

// isFilledIn reports whether a value has all of what was sent, and more.
func isFilledIn(sent, result any) bool {
	switch s := sent.(type) {
	case map[string]any:
		r, isMap := result.(map[string]any)
		for key := range s {
			if _, found := r[key]; !found || !isFilledIn(s[key], r[key]) {
				return false
			}
		}
		return isMap
	case []any:
		r, isList := result.([]any)
		for i := range s {
			if len(r) != len(s) || !isFilledIn(s[i], r[i]) {
				return false
			}
		}
		return isList
	}
	return isEqual(sent, result)
}

// owned reports whether the applier owns a path now.
func (c *comparison) owned(path fieldpath.Path) bool {
	return slices.ContainsFunc(c.before, func(e fieldowners.Entry) bool { return managedBy(e.Owner, c.apply) && e.Fields.Has(path) })
}

// sentButChanged finds what does not come back as it was sent.
func (c *comparison) sentButChanged() {
	sent, _ := c.wholes(c.sent)
	for _, path := range sortedUnion(sent, nil) {
		n := sent[path]
		result, found := fieldowners.Value(c.result.Object, n.Path)
		if n.Value == nil || c.explained[path] || found && isEqual(n.Value, result) || consequences.Has(n.Path) {
			continue
		}
		switch {
		case c.isIgnored(n.Path):
			c.add(&c.remarks, n.Path, ignored)
		case isSecret(c.sent) && *n.Path[0].FieldName == "stringData":
			c.add(&c.remarks, n.Path, normalised)
		case isEmpty(n.Value) && found:
			c.add(&c.remarks, n.Path, defaulted)
		case isZero(n.Value) && !found && !c.moved():
			c.add(&c.remarks, n.Path, normalised)
		case found:
			c.add(&c.remarks, n.Path, serverCause(n.Value, result))
		default:
			c.add(&c.findings, n.Path, pruned)
		}
	}
}

// isIgnored reports whether the endpoint leaves a field out whatever the schema says.
func (c *comparison) isIgnored(path fieldpath.Path) bool {
	top := *path[0].FieldName
	if c.apply.Subresource != "" {
		return top != c.apply.Subresource
	}
	return top == "status"
}

// ownership finds what changes in managedFields alone.
func (c *comparison) ownership() {
	for _, m := range leaves(fieldowners.Diff(c.before, c.after)) {
		path := fieldowners.FormatPath(m.Path)
		mine := func(o fieldowners.Owner) bool { return managedBy(o, c.apply) }
		switch {
		case c.explained[path]:
		case slices.ContainsFunc(m.Gained, mine):
			c.add(&c.findings, m.Path, newlyOwned)
		case slices.ContainsFunc(m.Lost, mine):
			c.add(&c.findings, m.Path, released)
		}
	}
	if before, after := c.own(c.before), c.own(c.after); before != nil && after != nil && before.APIVersion != after.APIVersion {
		c.add(&c.findings, nil, otherVersion)
	}
}

// leaves leaves out moves of lists, maps and list items of which parts move too.
func leaves(moves []fieldowners.Move) []fieldowners.Move {
	var kept []fieldowners.Move
	for i, m := range moves {
		isPrefix := i+1 < len(moves) && len(moves[i+1].Path) > len(m.Path) && moves[i+1].Path[:len(m.Path)].Equals(m.Path)
		if !isPrefix {
			kept = append(kept, m)
		}
	}
	return kept
}

func (c *comparison) own(entries []fieldowners.Entry) *fieldowners.Entry {
	for i := range entries {
		if managedBy(entries[i].Owner, c.apply) {
			return &entries[i]
		}
	}
	return nil
}

// moved reports whether the API server renewed the time of the applier's entry, which it does when it is going to write. In
// the second of the last write that cannot be seen.
func (c *comparison) moved() bool {
	before, after := c.own(c.before), c.own(c.after)
	return before != nil && after != nil && !before.Time.Equal(after.Time)
}

func (c *comparison) add(to *[]Finding, path fieldpath.Path, cause string) {
	f := Finding{Cause: cause, Explanation: explanations[cause]}
	if path != nil {
		f.Path = fieldowners.FormatPath(path)
	}
	if path != nil && cause != newlyOwned && cause != released {
		f.Sent, f.isSent = fieldowners.Value(show.MaskSecret(c.sent).Object, path)
		f.Live, f.isLive = fieldowners.Value(show.MaskSecret(c.live).Object, path)
		f.Result, f.isResult = fieldowners.Value(show.MaskSecret(c.result).Object, path)
	}
	c.explained[f.Path] = true
	*to = append(*to, f)
}

// isEqual compares values as JSON has them, in which 1 is 1.0.
func isEqual(a, b any) bool {
	return reflect.DeepEqual(a, b) || show.Exact(a) == show.Exact(b)
}

// isReordered reports whether two lists have the same items.
func isReordered(a, b any) bool {
	one, isList := a.([]any)
	two, areLists := b.([]any)
	if !isList || !areLists || len(one) != len(two) {
		return false
	}
	return slices.Equal(sortedItems(one), sortedItems(two))
}

func sortedItems(items []any) []string {
	texts := make([]string, len(items))
	for i := range items {
		texts[i] = show.Exact(items[i])
	}
	slices.Sort(texts)
	return texts
}

// isNormalised reports whether two values are the same quantity or the same text but for its case.
func isNormalised(a, b any) bool {
	one, err := resource.ParseQuantity(strings.Trim(show.Exact(a), `"`))
	two, err2 := resource.ParseQuantity(strings.Trim(show.Exact(b), `"`))
	if err == nil && err2 == nil && one.Cmp(two) == 0 {
		return true
	}
	return strings.EqualFold(show.Exact(a), show.Exact(b))
}
