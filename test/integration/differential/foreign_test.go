package differential_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	escape   = strings.NewReplacer("~", "~0", "/", "~1")
	appliers = []string{"rival-a", "rival-b"}
	updaters = []string{"updater", "kubectl-edit", "controller"}
)

// foreignWrite is what another writer does to an object; live is nil when it does not exist.
type foreignWrite struct {
	name   string
	weight int
	do     func(ctx context.Context, s *side, live *unstructured.Unstructured) error
}

var foreignWrites = []foreignWrite{
	{"apply", 24, func(ctx context.Context, s *side, live *unstructured.Unstructured) error {
		return s.applyAs(ctx, appliers[s.r.IntN(len(appliers))], live)
	}},
	{"apply under our name", 3, func(ctx context.Context, s *side, live *unstructured.Unstructured) error {
		return s.applyAs(ctx, me, live)
	}},
	{"update", 18, func(ctx context.Context, s *side, live *unstructured.Unstructured) error {
		return s.updateAs(ctx, updaters[s.r.IntN(len(updaters))], live)
	}},
	{"update under our name", 3, func(ctx context.Context, s *side, live *unstructured.Unstructured) error {
		return s.updateAs(ctx, me, live)
	}},
	{"merge patch", 18, mergePatch},
	{"JSON patch", 14, jsonPatch},
	{"label", 6, label},
	{"ownership transfer", 6, transfer},
	{"managedFields wiped", 2, wipe},
	{"delete", 3, remove},
}

// disturb lets somebody else write once. A refusal is no error: the drawn content need not be valid.
func (o *object) disturb(ctx context.Context) error {
	s := o.anySide()
	live, err := o.fetch(ctx, s.version)
	if err != nil {
		return err
	}
	if live == nil {
		return o.recreate(ctx)
	}
	write := drawWrite(o.r.IntN(totalWeight()))
	err = write.do(ctx, s, live)
	o.note("foreign %s on %q: %v", write.name, s.subresource, err)
	tally.count("writes by others", write.name+map[bool]string{true: ", refused"}[err != nil])
	return ignoreRefusal(err)
}

// anySide is a side that others write to; one of a status that we do not apply is made for it.
func (o *object) anySide() *side {
	if o.noise != nil && o.r.IntN(3) == 0 {
		return &side{object: o, subresource: "status", version: o.versions[0]}
	}
	return o.sides[o.r.IntN(len(o.sides))]
}

func totalWeight() int {
	sum := 0
	for _, w := range foreignWrites {
		sum += w.weight
	}
	return sum
}

func drawWrite(n int) foreignWrite {
	for _, w := range foreignWrites {
		if n -= w.weight; n < 0 {
			return w
		}
	}
	panic("weights do not add up")
}

// ignoreRefusal drops errors by which the API server refuses content, as opposed to failing itself.
func ignoreRefusal(err error) error {
	if isRefusal(err) {
		return nil
	}
	return err
}

func isRefusal(err error) bool {
	status, ok := err.(apierrors.APIStatus)
	return ok && status.Status().Code >= http.StatusBadRequest && status.Status().Code <= http.StatusInternalServerError
}

// drawn is content near to what we want, near to what is there, or any.
func (s *side) drawn(live *unstructured.Unstructured) content {
	switch s.r.IntN(3) {
	case 0:
		return s.varied(s.desired)
	case 1:
		return s.varied(partsOf(live, s.fresh()))
	}
	return s.fresh()
}

// anyVersion is a served version.
func (o *object) anyVersion() string { return o.versions[o.r.IntN(len(o.versions))] }

func (s *side) applyAs(ctx context.Context, manager string, live *unstructured.Unstructured) error {
	version := s.anyVersion()
	_, err := s.patch(ctx, types.ApplyPatchType, s.document(version, s.drawn(live)), version, manager, s.r.IntN(2) == 0)
	return err
}

func (s *side) updateAs(ctx context.Context, manager string, _ *unstructured.Unstructured) error {
	u, err := s.fetch(ctx, s.anyVersion())
	if err != nil {
		return err
	}
	drawn := decoded(s.drawn(u))
	for _, name := range slices.Sorted(maps.Keys(drawn)) {
		part := drawn[name]
		if name == "metadata" {
			u.SetLabels(nil)
			continue
		}
		if s.r.IntN(2) == 0 {
			part = merged(u.Object[name], part)
		}
		u.Object[name] = part
	}
	if s.subresource == "" {
		return admin.Update(ctx, u, client.FieldOwner(manager))
	}
	return admin.SubResource(s.subresource).Update(ctx, u, client.FieldOwner(manager))
}

// merged is over laid on base.
func merged(base, over any) any {
	b, isMap := base.(content)
	o, ok := over.(content)
	if !isMap || !ok {
		return over
	}
	m := content{}
	for name, field := range b {
		m[name] = field
	}
	for name, field := range o {
		m[name] = merged(b[name], field)
	}
	return m
}

func mergePatch(ctx context.Context, s *side, live *unstructured.Unstructured) error {
	body := s.drawn(live)
	for _, name := range slices.Sorted(maps.Keys(body)) {
		if part, isMap := body[name].(content); isMap {
			body[name] = withNulls(s.r, part)
		}
	}
	_, err := s.patch(ctx, types.MergePatchType, body, s.anyVersion(), updaters[s.r.IntN(len(updaters))], false)
	return err
}

// jsonPatch removes, clears or moves one part of what is there.
func jsonPatch(ctx context.Context, s *side, live *unstructured.Unstructured) error {
	parts := s.fresh()
	theirs := partsOf(live, parts)
	all := pointers("", theirs)
	if len(all) == 0 {
		return nil
	}
	at := all[s.r.IntN(len(all))]
	op := content{"op": "remove", "path": at}
	switch s.r.IntN(4) {
	case 0:
		op = content{"op": "replace", "path": at, "value": []any{nil, "", int64(0), false, "a", content{}, []any{}}[s.r.IntN(7)]}
	case 1:
		name := strings.Split(at, "/")[1]
		shuffle(s.r, theirs[name])
		op = content{"op": "replace", "path": "/" + name, "value": theirs[name]}
	}
	_, err := s.patch(ctx, types.JSONPatchType, []any{op}, s.version, updaters[s.r.IntN(len(updaters))], false)
	return err
}

func label(ctx context.Context, s *side, _ *unstructured.Unstructured) error {
	main := &side{object: s.object, version: s.version}
	body := content{"metadata": content{"labels": content{"a": fmt.Sprint(s.r.IntN(3)), "theirs": nil}, "annotations": content{"note": fmt.Sprint(s.r.IntN(9))}}}
	_, err := main.patch(ctx, types.MergePatchType, body, s.version, "kubectl-label", false)
	return err
}

// transfer moves what updates own to an applier, ours among them.
func transfer(ctx context.Context, s *side, live *unstructured.Unstructured) error {
	to := []string{"rival-a", "rival-b", me}[s.r.IntN(3)]
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, sets.New(updaters...), to, csaupgrade.Subresource(s.subresource))
	if err != nil || patch == nil {
		return nil //nolint:nilerr // entries that cannot be merged are left alone
	}
	return admin.Patch(ctx, s.identity(s.version), client.RawPatch(types.JSONPatchType, patch))
}

func wipe(ctx context.Context, s *side, _ *unstructured.Unstructured) error {
	body := content{"metadata": content{"managedFields": []any{content{}}}}
	main := &side{object: s.object, version: s.version}
	_, err := main.patch(ctx, types.MergePatchType, body, s.version, "wiper", false)
	return err
}

func remove(ctx context.Context, s *side, _ *unstructured.Unstructured) error {
	return client.IgnoreNotFound(admin.Delete(ctx, s.identity(s.version)))
}

// recreate makes the object again, with content of others, or leaves it to our next apply.
func (o *object) recreate(ctx context.Context) error {
	if o.r.IntN(2) == 0 {
		return nil
	}
	s := o.sides[0]
	u := &unstructured.Unstructured{Object: decoded(s.document(s.anyVersion(), s.fresh()))}
	err := admin.Create(ctx, u, client.FieldOwner("creator"))
	o.note("foreign create: %v", err)
	return ignoreRefusal(err)
}
