package ssa

import (
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hduolab/quell/controller/fieldowners"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// maxRehearsals bounds the dry runs of one call.
const maxRehearsals = 8

// makeRoom heals a refusal of content that is not valid beside what others left: a list item under another key but with our
// name, another member of a one-of. The API server would keep it, for it is theirs. If a dry run shows that the content is
// valid without it, its fields are moved into our own entry of managedFields, and the next apply, which does not have them,
// removes them. Only fields under rule Force and none that were written through a subresource are taken; as few as the dry
// runs show to be enough. It reports whether to send again, at the cost of one read, up to maxRehearsals dry runs, and one
// patch of the object itself.
func (c *call) makeRoom(ctx context.Context, refusal error) (bool, error) {
	if c.madeRoom || c.Live == nil || c.opts.Reader == nil || c.opts.Subresource != "" || c.record.denied {
		return false, nil
	}
	named := details(refusal).Causes
	if seen, err := c.survey(c.Live); err != nil || len(seen.choices(named)) == 0 {
		return false, err
	}
	fresh, err := c.read(ctx)
	if err != nil || fresh.GetUID() != c.Live.GetUID() {
		return false, nil // the refusal is what to tell
	}
	if v := c.version(); v != "" && v != fresh.GetResourceVersion() {
		return true, nil // the rules were asked about an older one
	}
	if _, err := fieldowners.Typed(fresh, fresh.GroupVersionKind(), c.opts.Types); err != nil {
		return false, nil //nolint:nilerr // what Types do not know may be what is in the way, and no rehearsal would have it
	}
	s, err := c.survey(fresh)
	if err != nil {
		return false, err
	}
	for _, obstacles := range s.choices(named) {
		entries, err := c.entriesWith(obstacles, fresh)
		if err != nil {
			logf.FromContext(ctx).Error(err, "what others left in the way cannot be taken over",
				"kind", c.record.kind, "name", c.object.GetName(), "fieldManager", c.opts.FieldManager)
			continue
		}
		switch err := c.rehearse(ctx, fresh, s, entries); {
		case err == nil:
			return c.clear(ctx, fresh, s, obstacles, entries)
		case apierrors.IsConflict(err):
			return true, nil
		case apierrors.IsForbidden(err):
			return false, nil
		}
	}
	return false, nil
}

// entriesWith are the managedFields of fresh with the obstacles in our own entry, for an apply that does not have them to remove.
func (c *call) entriesWith(obstacles []fieldpath.Path, fresh *unstructured.Unstructured) ([]metav1.ManagedFieldsEntry, error) {
	return fieldowners.Handover{
		From:  func(o fieldowners.Owner) bool { return o.Subresource == "" },
		Paths: obstacles,
		To:    c.opts.FieldManager,
	}.Apply(fresh.GetManagedFields())
}

// site is an object and what it would be with our content.
type site struct {
	live, merged             *typed.TypedValue
	liveFields, mergedFields *fieldpath.Set
	// theirs are the fields of others on the object itself, wanted those of our content.
	theirs, wanted *fieldpath.Set
	entries        []fieldowners.Entry
	verdicts       verdicts
}

func (c *call) survey(live client.Object) (s site, err error) {
	s.wanted, s.theirs = c.fields, fieldpath.NewSet()
	if s.verdicts, err = c.Rules.read(); err != nil {
		return s, err
	}
	for _, e := range fieldowners.Parse(live.GetManagedFields()) {
		if e.Subresource == "" && !e.Same(c.owner()) {
			s.entries, s.theirs = append(s.entries, e), s.theirs.Union(e.Fields)
		}
	}
	if s.live, _, err = c.typedOf(live); err != nil {
		return s, err
	}
	if s.merged, err = s.live.Merge(c.typed); err != nil {
		return s, err
	}
	if s.liveFields, err = s.live.ToFieldSet(); err != nil {
		return s, err
	}
	s.mergedFields, err = s.merged.ToFieldSet()
	return s, err
}

// choices are sets of obstacles to try, the least intrusive first: those at the fields that the API server named and those beside
// these, one by one, then all of the first sort, with each of the second, and all.
func (s site) choices(causes []metav1.StatusCause) [][]fieldpath.Path {
	var near, far []fieldpath.Path
	for _, cause := range causes {
		field := locate(cause.Field, s.merged.AsValue(), s.mergedFields)
		if len(field) == 0 {
			continue // whatever it is about, nothing points at what others have
		}
		near = append(near, s.obstacles(field)...)
		if cause.Type == metav1.CauseTypeFieldValueDuplicate {
			near = append(near, s.twins(field)...)
		}
		if len(field) > 1 {
			far = append(far, s.obstacles(field[:len(field)-1])...)
		}
	}
	near = distinct(near, nil)
	far = distinct(far, near)
	all := append(slices.Clip(near), far...)
	choices := each(nil, all)
	if len(near) > 1 && len(far) > 0 {
		choices = append(choices, near)
	}
	if len(near) > 0 && len(far) > 1 {
		choices = append(choices, each(near, far)...)
	}
	choices = choices[:min(len(choices), maxRehearsals-1)]
	if len(all) > 1 {
		choices = append(choices, all)
	}
	return choices
}

// each adds to some paths each of the others.
func each(some, others []fieldpath.Path) [][]fieldpath.Path {
	var sets [][]fieldpath.Path
	for _, o := range others {
		sets = append(sets, append(slices.Clip(some), o))
	}
	return sets
}

// distinct are the paths that are not in others, each once.
func distinct(paths, others []fieldpath.Path) []fieldpath.Path {
	var kept []fieldpath.Path
	for _, p := range paths {
		if !slices.ContainsFunc(append(slices.Clip(others), kept...), p.Equals) {
			kept = append(kept, p)
		}
	}
	return kept
}

// obstacles are the topmost fields at or below a path, or above it, that others own and our content does not have.
func (s site) obstacles(path fieldpath.Path) []fieldpath.Path {
	live, wanted, theirs := s.liveFields, s.wanted, s.theirs
	for i, e := range path {
		if !touches(wanted, e) {
			return s.takeable(path[:i+1], theirs)
		}
		live, wanted, theirs = live.WithPrefix(e), wanted.WithPrefix(e), theirs.WithPrefix(e)
	}
	return s.below(path, live, wanted, theirs)
}

func (s site) below(path fieldpath.Path, live, wanted, theirs *fieldpath.Set) []fieldpath.Path {
	var found []fieldpath.Path
	for _, e := range elements(live) {
		part := append(slices.Clip(path), e)
		if touches(wanted, e) {
			found = append(found, s.below(part, live.WithPrefix(e), wanted.WithPrefix(e), theirs.WithPrefix(e))...)
		} else {
			found = append(found, s.takeable(part, theirs)...)
		}
	}
	return found
}

// takeable is the path itself if it is others' and the rules allow to take it. theirs are their fields below its parent. Metadata is not:
// rehearse does not try it.
func (s site) takeable(path fieldpath.Path, theirs *fieldpath.Set) []fieldpath.Path {
	if isMetadata(path) || !touches(theirs, path[len(path)-1]) || !s.verdicts.forces(path) {
		return nil
	}
	return []fieldpath.Path{path}
}

// twins are the list items that have the value of a field that must not come twice.
func (s site) twins(field fieldpath.Path) []fieldpath.Path {
	last := -1
	for i, e := range field {
		if e.Key != nil {
			last = i
		}
	}
	if last < 0 {
		return nil
	}
	wanted := at(s.merged.AsValue(), field)
	return slices.DeleteFunc(s.obstacles(field[:last]), func(o fieldpath.Path) bool {
		twin := at(s.merged.AsValue(), append(slices.Clip(o), field[last+1:]...))
		return len(o) != last+1 || wanted == nil || twin == nil || !value.Equals(twin, wanted)
	})
}

func touches(fields *fieldpath.Set, e fieldpath.PathElement) bool {
	return fields.Members.Has(e) || !fields.WithPrefix(e).Empty()
}

// elements are the first steps of all paths of a set.
func elements(fields *fieldpath.Set) []fieldpath.PathElement {
	all := fieldpath.NewSet()
	fields.Members.Iterate(func(e fieldpath.PathElement) { all.Insert(fieldpath.Path{e}) })
	fields.Children.Iterate(func(e fieldpath.PathElement) { all.Insert(fieldpath.Path{e}) })
	var list []fieldpath.PathElement
	all.Members.Iterate(func(e fieldpath.PathElement) { list = append(list, e) })
	return list
}

// parts are those of a field as validation writes it (k8s.io/apimachinery/pkg/util/validation/field, Path.String).
var parts = regexp.MustCompile(`[^.\[\]]+|\[[^\]]*\]`)

// locate reads such a field, whose list items have indices, as a path in v, as far as it leads.
func locate(field string, v value.Value, fields *fieldpath.Set) fieldpath.Path {
	var path fieldpath.Path
	for _, word := range parts.FindAllString(field, -1) {
		e, found := stepOf(strings.Trim(word, "[]"), v, fields)
		if !found {
			break
		}
		path = append(path, e)
		v, fields = child(v, e), fields.WithPrefix(e)
	}
	return path
}

func stepOf(word string, v value.Value, fields *fieldpath.Set) (fieldpath.PathElement, bool) {
	switch {
	case v == nil:
	case v.IsMap():
		e := fieldpath.FieldNameElement(word)
		return e, touches(fields, e)
	case v.IsList():
		i, err := strconv.Atoi(word)
		if err != nil || i < 0 || i >= v.AsList().Length() {
			break
		}
		item := v.AsList().At(i)
		list := elements(fields)
		for _, defaults := range []bool{false, true} {
			if at := slices.IndexFunc(list, func(e fieldpath.PathElement) bool { return isItem(item, e, defaults) }); at >= 0 {
				return list[at], true
			}
		}
	}
	return fieldpath.PathElement{}, false
}

// notRehearsed is what validation of the object's own content does not depend on.
var notRehearsed = []string{"apiVersion", "kind", "metadata", "status"}

// rehearse asks the API server whether it would accept what an apply of our content makes of the object with these managedFields.
func (c *call) rehearse(ctx context.Context, fresh *unstructured.Unstructured, s site, entries []metav1.ManagedFieldsEntry) error {
	final, err := c.applied(s.live, entries)
	if err != nil {
		return err
	}
	object, _ := final.AsValue().Unstructured().(map[string]any)
	patch := []map[string]any{{"op": "replace", "path": "/metadata/resourceVersion", "value": fresh.GetResourceVersion()}}
	for _, field := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(notRehearsed, field) {
			patch = append(patch, map[string]any{"op": "add", "path": "/" + field, "value": object[field]})
		}
	}
	for _, field := range slices.Sorted(maps.Keys(fresh.Object)) {
		if _, stays := object[field]; !stays && !slices.Contains(notRehearsed, field) {
			patch = append(patch, map[string]any{"op": "remove", "path": "/" + field})
		}
	}
	raw, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	return c.opts.Client.Patch(ctx, fresh.DeepCopy(), client.RawPatch(types.JSONPatchType, raw), client.DryRunAll, client.FieldOwner(c.opts.FieldManager))
}

// applied is what an apply of our content with force makes of live, by the API server's own algorithm.
func (c *call) applied(live *typed.TypedValue, entries []metav1.ManagedFieldsEntry) (*typed.TypedValue, error) {
	const ours = "ours" // whoever we are: the others have numbers
	managers := fieldpath.ManagedFields{}
	for i, e := range fieldowners.Parse(entries) {
		manager := strconv.Itoa(i)
		if e.Same(c.owner()) {
			manager = ours
		}
		managers[manager] = fieldpath.NewVersionedSet(e.Fields, "", e.Operation == metav1.ManagedFieldsOperationApply)
	}
	updater := (&merge.UpdaterBuilder{Converter: oneVersion{}, ReturnInputOnNoop: true}).BuildUpdater()
	final, _, err := updater.Apply(live, c.typed, "", managers, ours, true)
	return final, err
}

// oneVersion reads the fields of all API versions as if they were of one: only the API server can convert objects.
type oneVersion struct{}

func (oneVersion) Convert(o *typed.TypedValue, _ fieldpath.APIVersion) (*typed.TypedValue, error) {
	return o, nil
}

func (oneVersion) IsMissingVersionError(error) bool { return false }

// clear takes the obstacles over. An object that changed meanwhile is tried again.
func (c *call) clear(
	ctx context.Context, fresh *unstructured.Unstructured, s site, obstacles []fieldpath.Path, entries []metav1.ManagedFieldsEntry,
) (bool, error) {
	done, err := c.replaceEntries(ctx, fresh, entries)
	if err != nil || !done {
		return !c.record.denied, err
	}
	c.madeRoom = true
	for _, o := range obstacles {
		c.record.room = append(c.record.room, Reason{Change: InTheWay, Path: fieldowners.FormatPath(o), Owners: s.ownersWithin(o)})
	}
	if c.Live, err = c.inScheme(fresh); err == nil {
		c.keep(c.Live)
	}
	return true, err
}

func (s site) ownersWithin(top fieldpath.Path) []fieldowners.Owner {
	var owners []fieldowners.Owner
	for _, e := range s.entries {
		if !fieldowners.Below(e.Fields, []fieldpath.Path{top}).Empty() {
			owners = append(owners, e.Owner)
		}
	}
	return owners
}

// tellRoom names what was in the way, and whose it was, in place of the removal of its fields.
func (c *call) tellRoom() {
	room := c.record.room
	if len(room) == 0 {
		return
	}
	c.result.Reasons = slices.DeleteFunc(slices.Clone(c.result.Reasons), func(r Reason) bool {
		return r.Change == Removed && slices.ContainsFunc(room, func(o Reason) bool { return isAtOrBelow(r.Path, o.Path) })
	})
	c.result.Reasons = append(c.result.Reasons, room...)
	sortReasons(c.result.Reasons)
	c.record.room, c.record.inTheWay = nil, room
}

// isAtOrBelow compares paths as fieldowners.FormatPath writes them, where .spec.ports is not below .spec.port.
func isAtOrBelow(path, top string) bool {
	rest, found := strings.CutPrefix(path, top)
	return found && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
