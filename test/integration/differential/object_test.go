package differential_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/hduolab/quell/controller/ssa"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// me is the field manager under test.
const me = "quell-test"

const namespace = metav1.NamespaceDefault

// kind is a kind of objects with what is written to them.
type kind struct {
	schema.GroupKind
	// versions that are served; the first one is stored.
	versions []string
	types    managedfields.TypeConverter
	// parts draws the top-level fields of an apply configuration, all but apiVersion, kind and status.
	parts func(r *rand.Rand, name string) content
	// noise draws what the kind's own controller writes into the status; nil for kinds whose status we apply.
	noise func(r *rand.Rand) content
	// status is the schema of the status that we apply, nil when we do not.
	status *shape
	// spec is the schema of the rest, nil for kinds that are built in.
	spec func() *shape
	// live makes what a typed cache holds; nil means unstructured objects.
	live func() client.Object
	// told is the schema, for a report.
	told func() string
	// kept are the appliers that live as long as the suite, by subresource and version.
	kept map[string]*writer
}

// object is one object with its random history.
type object struct {
	*kind
	name    string
	r       *rand.Rand
	sides   []*side
	history []string
	// wrote is when the last write was sent, for managedFields has a resolution of one second.
	wrote time.Time
}

// side is an object's main resource or status with what we apply there.
type side struct {
	*object
	subresource string
	version     string
	desired     content
	rules       ssa.Rules
	// seen are objects as they were read earlier.
	seen []client.Object
}

func newObject(k *kind, name string, seed uint64) *object {
	o := &object{kind: k, name: name, r: rand.New(rand.NewPCG(seed, hashOf(name)))}
	subresources := []string{""}
	if k.status != nil {
		subresources = append(subresources, "status")
	}
	for _, sub := range subresources {
		s := &side{object: o, subresource: sub, version: k.versions[0]}
		switch o.r.IntN(8) {
		case 0:
			s.rules.Default = ssa.Report
		case 1:
			s.rules.Default = ssa.Yield
		}
		o.sides = append(o.sides, s)
	}
	return o
}

func hashOf(name string) uint64 {
	h := uint64(14695981039346656037)
	for _, b := range []byte(name) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return h
}

func (o *object) note(format string, args ...any) {
	o.history = append(o.history, fmt.Sprintf(format, args...))
	if len(o.history) > 40 {
		o.history = o.history[1:]
	}
}

// identity is an object with nothing but its name.
func (o *object) identity(version string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(o.WithVersion(version))
	u.SetNamespace(namespace)
	u.SetName(o.name)
	return u
}

// fetch reads the object in a version, nil when there is none.
func (o *object) fetch(ctx context.Context, version string) (*unstructured.Unstructured, error) {
	u := o.identity(version)
	err := admin.Get(ctx, client.ObjectKeyFromObject(u), u)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return u, err
}

// fresh draws content for one side.
func (s *side) fresh() content {
	if s.subresource == "" {
		return s.parts(s.r, s.name)
	}
	if s.kind.status == nil {
		return content{"status": s.noise(s.r)}
	}
	status, _ := s.kind.status.value(s.r).(content)
	if status == nil {
		status = content{}
	}
	return content{"status": status}
}

// varied is a variation of content for one side.
func (s *side) varied(before content) content {
	fresh, v := s.fresh(), content{}
	for _, name := range slices.Sorted(maps.Keys(fresh)) {
		part := fresh[name]
		old, had := before[name]
		was, _ := old.(content)
		switch fields, isMap := part.(content); {
		case isMap:
			v[name] = varied(s.r, was, fields)
		case had && s.r.IntN(3) > 0:
			v[name] = copied(old)
		default:
			v[name] = part
		}
	}
	return v
}

// document is an apply configuration with this content.
func (s *side) document(version string, parts content) content {
	d := copied(parts).(content)
	metadata, _ := d["metadata"].(content)
	if metadata == nil {
		metadata = content{}
	}
	metadata["name"], metadata["namespace"] = s.name, namespace
	d["metadata"], d["apiVersion"], d["kind"] = metadata, s.WithVersion(version).GroupVersion().String(), s.Kind
	return d
}

// patch sends a patch as somebody and returns the API server's answer.
func (s *side) patch(ctx context.Context, kind types.PatchType, body any, version, manager string, force bool) (*unstructured.Unstructured, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	u, patch := s.identity(version), client.RawPatch(kind, raw)
	s.wrote = time.Now()
	if s.subresource == "" {
		opts := []client.PatchOption{client.FieldOwner(manager)}
		if force {
			opts = append(opts, client.ForceOwnership)
		}
		return u, admin.Patch(ctx, u, patch, opts...)
	}
	opts := []client.SubResourcePatchOption{client.FieldOwner(manager)}
	if force {
		opts = append(opts, client.ForceOwnership)
	}
	return u, admin.SubResource(s.subresource).Patch(ctx, u, patch, opts...)
}

// statement is the apply of our content as the applier would send it onto live: lists of a status in live order, conditions with
// the times that are there, without what is left to others.
func (s *side) statement(live *unstructured.Unstructured, yielded []ssa.Reason) content {
	d := s.document(s.version, s.desired)
	if s.subresource != "" {
		carryTimes(d, live)
		d["status"] = s.kind.status.inOrderOf(d["status"], live.Object["status"])
	}
	for _, y := range yielded {
		d = without(d, y.Path)
	}
	return d
}

// carryTimes gives conditions the transition times that are there while their status is, else that of now.
func carryTimes(d content, live *unstructured.Unstructured) {
	theirs, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	ours, _, _ := unstructured.NestedFieldNoCopy(d, "status", "conditions")
	list, _ := ours.([]any)
	for _, item := range list {
		condition, ok := item.(content)
		if !ok {
			continue
		}
		condition["lastTransitionTime"] = clock.Now().UTC().Format(time.RFC3339)
		for _, their := range theirs {
			old, _ := their.(content)
			if time := old["lastTransitionTime"]; time != nil && old["type"] == condition["type"] && isSame(old["status"], condition["status"]) {
				condition["lastTransitionTime"] = time
			}
		}
	}
}

// isSame compares texts of which an empty one is the same as none.
func isSame(a, b any) bool { return a == b || (a == nil || a == "") && (b == nil || b == "") }

// described is all that it takes to understand a fault.
func (s *side) described(live *unstructured.Unstructured) string {
	var b strings.Builder
	for _, part := range [][2]string{
		{"schema", s.told()}, {"object", encoded(live)}, {"content", encoded(s.document(s.version, s.desired))},
		{"rules", encoded(s.rules)}, {"history", "\n    " + strings.Join(s.history, "\n    ")},
	} {
		fmt.Fprintf(&b, "\n  %s: %s", part[0], part[1])
	}
	return b.String()
}

// essence is an object without what tells one version of it from the next: resourceVersion, generation and the times in
// managedFields.
func essence(u *unstructured.Unstructured) string {
	c := u.DeepCopy()
	c.SetResourceVersion("")
	c.SetGeneration(0)
	entries := c.GetManagedFields()
	for i := range entries {
		entries[i].Time = nil
	}
	slices.SortFunc(entries, func(a, b metav1.ManagedFieldsEntry) int { return strings.Compare(encoded(a), encoded(b)) })
	c.SetManagedFields(entries)
	return encoded(c.Object)
}

// onlyDisowns reports whether answer is live but for fields that we own and that others own no more.
func onlyDisowns(live, answer *unstructured.Unstructured) bool {
	before, after := fieldowners.Parse(live.GetManagedFields()), fieldowners.Parse(answer.GetManagedFields())
	ours := fieldpath.NewSet()
	for _, e := range before {
		if e.Manager == me {
			ours = ours.Union(e.Fields)
		}
	}
	for _, e := range before {
		still, _ := fieldowners.Find(after, e.Owner)
		if still.Fields == nil {
			still.Fields = fieldpath.NewSet()
		}
		lost, won := e.Fields.Difference(still.Fields), still.Fields.Difference(e.Fields)
		if !won.Empty() || !lost.Difference(ours).Empty() || e.Manager == me && !lost.Empty() {
			return false
		}
	}
	return len(after) <= len(before) && essence(unmanaged(live)) == essence(unmanaged(answer))
}

// onlyEmpties reports whether answer is live but for fields that are empty, in places that have owners of their own.
func (k *kind) onlyEmpties(live, answer *unstructured.Unstructured) bool {
	if k.spec == nil {
		return false
	}
	bare := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		c := u.DeepCopy()
		for name, shape := range map[string]*shape{"spec": k.spec(), "status": k.status} {
			if shape.isEmpty(shape.bare(live.Object[name])) { // a map that begins gets its defaults
				c.Object[name] = shape.undefaulted(c.Object[name])
			}
			if c.Object[name] = shape.bare(c.Object[name]); shape.isEmpty(c.Object[name]) {
				delete(c.Object, name)
			}
		}
		return c
	}
	return onlyDisowns(bare(live), bare(answer))
}

// onlyBooks reports whether answer is live but for an entry that the API server makes for whatever it finds in an object without
// managedFields.
func onlyBooks(live, answer *unstructured.Unstructured) bool {
	entries := answer.GetManagedFields()
	return len(live.GetManagedFields()) == 0 && len(entries) == 1 && entries[0].Manager == "before-first-apply" &&
		essence(live) == essence(unmanaged(answer))
}

// onlyDrops reports whether answer is live but for maps that it lacks altogether, although they are in what was applied, as {}.
func onlyDrops(live, answer *unstructured.Unstructured, applied content) bool {
	restored := answer.DeepCopy()
	dropped := restoreDropped(restored.Object, live.Object, applied)
	return dropped > 0 && essence(restored) == essence(live)
}

// restoreDropped gives answer the maps of live that it lacks and that are {} in what was applied, and counts them.
func restoreDropped(answer, live, applied content) int {
	dropped := 0
	for name, field := range applied {
		wanted, isMap := field.(content)
		had, wasMap := live[name].(content)
		if !isMap || !wasMap {
			continue
		}
		if has, ok := answer[name].(content); ok {
			dropped += restoreDropped(has, had, wanted)
		} else if len(wanted) == 0 && answer[name] == nil {
			answer[name], dropped = had, dropped+1
		}
	}
	return dropped
}

func unmanaged(u *unstructured.Unstructured) *unstructured.Unstructured {
	c := u.DeepCopy()
	c.SetManagedFields(nil)
	return c
}

func partsOf(u *unstructured.Unstructured, like content) content {
	c := content{}
	for _, name := range slices.Sorted(maps.Keys(like)) {
		if part, ok := u.Object[name]; ok && name != "metadata" {
			c[name] = copied(part)
		}
	}
	return c
}
