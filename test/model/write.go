package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	structurallisttype "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager"
	"k8s.io/utils/ptr"
)

// Verb is what a request asks for.
type Verb string

// The verbs that write.
const (
	Create Verb = "create"
	Update Verb = "update"
	Merge  Verb = "merge patch"
	Apply  Verb = "apply"
	Delete Verb = "delete"
)

// Request is one write.
type Request struct {
	Verb Verb
	// Subresource is "" or "status".
	Subresource string
	// Body has the kind, the name and the namespace, and what is written; for Delete nothing more.
	Body map[string]any
	// Manager is the field manager, Force that of an apply.
	Manager string
	Force   bool
	DryRun  bool
	// Preconditions are those of Delete.
	Preconditions *metav1.Preconditions
}

// Key is that of the object that is written.
func (r Request) Key() Key {
	u := &unstructured.Unstructured{Object: r.Body}
	return Key{u.GroupVersionKind().GroupKind(), types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}}
}

// String is the request in one line.
func (r Request) String() string {
	what := string(r.Verb)
	if r.Force {
		what += " with force"
	}
	if r.DryRun {
		what += ", dry run"
	}
	key := r.Key()
	name := key.Kind
	if r.Subresource != "" {
		name += "/" + r.Subresource
	}
	return fmt.Sprintf("%s %s %s as %q", what, name, key.Name, r.Manager)
}

// noMatch is what a client answers for a kind that the server does not serve.
func noMatch(gvk schema.GroupVersionKind) error {
	return &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
}

// outcome is what a request leads to.
type outcome struct {
	// answer is nil for Delete.
	answer *unstructured.Unstructured
	err    error
	// version is the new version of the object; without one it stays as it is, unless it is deleted.
	version *Version
	deleted bool
	// named tells that the object got a UID of its own.
	named bool
}

// Do carries a request out. It returns the object as the API server would answer, nil for Delete, and an error with the API server's
// own status. The body is not changed.
func (s *Server) Do(q Request) (*unstructured.Unstructured, error) {
	key := q.Key()
	o := s.kinds.memory.of(s.question(key, q), func() outcome { return s.answer(key, q) })
	s.commit(key, o)
	if o.answer == nil {
		return nil, o.err
	}
	return o.answer.DeepCopy(), o.err
}

// commit makes what a request leads to the state of the server.
func (s *Server) commit(key Key, o outcome) {
	if o.version == nil && !o.deleted {
		return
	}
	c := s.counters[key]
	c.version++
	if o.named {
		c.uid++
	}
	s.counters[key] = c
	s.logs[key.GroupKind] = append(slices.Clip(s.logs[key.GroupKind]), Event{Key: key, Before: s.objects[key], After: o.version})
	if o.deleted {
		delete(s.objects, key)
	} else {
		s.objects[key] = o.version
	}
}

// answer decides what a request leads to.
func (s *Server) answer(key Key, q Request) outcome {
	body := (&unstructured.Unstructured{Object: q.Body}).DeepCopy()
	r, err := s.resource(body.GroupVersionKind())
	if err != nil {
		return outcome{err: err}
	}
	manager := r.managers[q.Subresource]
	existing := s.objects[key]
	switch {
	case manager == nil:
		return outcome{err: notServed()}
	case q.Verb == Create:
		return s.create(q, r, body)
	case existing == nil && (q.Verb != Apply || q.Subresource != ""):
		return outcome{err: apierrors.NewNotFound(r.groupResource(), key.Name)}
	case q.Verb == Delete:
		return s.delete(q, r, existing)
	case existing == nil:
		return s.createByApply(q, r, body)
	}
	changed, err := s.changed(q, r, existing, body)
	if err != nil {
		return outcome{err: asStatus(err)}
	}
	return s.update(q, r, existing, changed)
}

// notServed is what the API server answers for a path that it does not serve.
func notServed() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Details: &metav1.StatusDetails{},
		Message: "the server could not find the requested resource",
	}}
}

// asStatus is an error of the field manager as the API server answers it.
func asStatus(err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return err
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 500, Message: err.Error()}}
}

// changed is the object that a request makes of the existing one, before the rules of its kind.
func (s *Server) changed(q Request, r *resource, existing *Version, body *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := existing.Object.DeepCopy()
	manager := r.managers[q.Subresource]
	if q.Verb == Apply {
		o, err := manager.Apply(live, body, q.Manager, q.Force)
		if err != nil {
			return nil, err
		}
		return o.(*unstructured.Unstructured), nil
	}
	if q.Verb == Merge {
		body = &unstructured.Unstructured{Object: merged(existing.Object.DeepCopy().Object, body.Object).(map[string]any)}
	}
	if err := r.decode(body); err != nil {
		return nil, err
	}
	return manager.UpdateNoErrors(live, body, q.Manager).(*unstructured.Unstructured), nil
}

// decode makes of a body what the API server reads of it.
func (r *resource) decode(u *unstructured.Unstructured) error {
	if r.custom == nil {
		return r.typed(u)
	}
	r.Default(u)
	return r.prune(u)
}

// merged is a JSON merge patch (RFC 7386).
func merged(into, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	result, ok := into.(map[string]any)
	if !ok {
		result = map[string]any{}
	}
	for name, value := range p {
		if value == nil {
			delete(result, name)
		} else {
			result[name] = merged(result[name], value)
		}
	}
	return result
}

// update checks the new version of an object by the rules of its kind, and that it is not the old one.
func (s *Server) update(q Request, r *resource, existing *Version, u *unstructured.Unstructured) outcome {
	old := existing.Object
	switch version := u.GetResourceVersion(); {
	case version == "" && r.custom != nil:
		return refused(invalid(r, u.GetName(), field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")))
	case version == "":
		u.SetResourceVersion(old.GetResourceVersion())
	case version != old.GetResourceVersion():
		return refused(apierrors.NewConflict(r.groupResource(), u.GetName(),
			errors.New("the object has been modified; please apply your changes to the latest version and try again")))
	}
	u = r.prepared(q.Subresource, u, old)
	errs := r.validate(u)
	if u.GetUID() != old.GetUID() {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "uid"), u.GetUID(), "field is immutable"))
	}
	if len(errs) > 0 {
		return refused(invalid(r, u.GetName(), errs...))
	}
	s.stamp(u, old)
	same, err := fieldmanager.IgnoreManagedFieldsTimestampsTransformer(context.Background(), u, old)
	if err != nil {
		return refused(err)
	}
	u = same.(*unstructured.Unstructured)
	switch {
	case q.DryRun:
		return outcome{answer: r.asRead(u)}
	case old.GetDeletionTimestamp() != nil && len(u.GetFinalizers()) == 0:
		return outcome{answer: u, deleted: true}
	case isSame(r.withVersion(u, old).Object, existing.persisted):
		return outcome{answer: old}
	}
	v := s.next(q.Key(), r, u)
	return outcome{answer: v.Object, version: v}
}

// withVersion is what the storage would get of an object if nothing changed.
func (r *resource) withVersion(u, old *unstructured.Unstructured) *unstructured.Unstructured {
	u = r.asWritten(u)
	if r.custom == nil {
		u = u.DeepCopy()
	}
	u.SetResourceVersion(old.GetResourceVersion())
	return u
}

// validate checks a custom resource by its schema.
func (r *resource) validate(u *unstructured.Unstructured) field.ErrorList {
	if r.custom == nil {
		return nil
	}
	errs := validation.ValidateCustomResource(nil, u.Object, r.validator)
	return append(errs, structurallisttype.ValidateListSetsAndMaps(nil, r.custom, u.Object)...)
}

func refused(err error) outcome { return outcome{err: err} }

// isSame compares as the storage does, which compares bytes.
func isSame(a, b map[string]any) bool {
	x, err := json.Marshal(a)
	if err != nil {
		return false
	}
	y, err := json.Marshal(b)
	return err == nil && string(x) == string(y)
}

func invalid(r *resource, name string, errs ...*field.Error) error {
	return apierrors.NewInvalid(r.GroupKind(), name, errs)
}

// prepared is u with everything that this endpoint does not write as it was.
func (r *resource) prepared(subresource string, u, old *unstructured.Unstructured) *unstructured.Unstructured {
	switch {
	case subresource == "":
		u.SetGeneration(old.GetGeneration())
		keep(u, old, "status")
		if r.generation && asks(r, u, old) {
			u.SetGeneration(old.GetGeneration() + 1)
		}
	case r.custom != nil:
		fresh := old.DeepCopy()
		fresh.SetManagedFields(u.GetManagedFields())
		keep(fresh, u, "status")
		u = fresh
	default:
		u.SetGeneration(old.GetGeneration())
		keep(u, old, "spec")
		u.SetLabels(old.GetLabels())
	}
	if u.GetUID() == "" {
		u.SetUID(old.GetUID())
	}
	u.SetCreationTimestamp(old.GetCreationTimestamp())
	if t := old.GetDeletionTimestamp(); t != nil {
		u.SetDeletionTimestamp(t)
	}
	return u
}

// keep makes one field of u that of from.
func keep(u, from *unstructured.Unstructured, name string) {
	if value, found := from.Object[name]; found {
		u.Object[name] = value
	} else {
		delete(u.Object, name)
	}
}

// asks reports whether people ask for something else, by what the kind counts as that.
func asks(r *resource, u, old *unstructured.Unstructured) bool {
	if r.custom == nil {
		return !equality.Semantic.DeepEqual(u.Object["spec"], old.Object["spec"]) ||
			r.Kind == "Deployment" && !equality.Semantic.DeepEqual(u.GetAnnotations(), old.GetAnnotations())
	}
	content := func(o *unstructured.Unstructured) map[string]any {
		rest := map[string]any{}
		for name, value := range o.Object {
			if name != "metadata" {
				rest[name] = value
			}
		}
		return rest
	}
	return !equality.Semantic.DeepEqual(content(u), content(old))
}

// create makes an object by POST.
func (s *Server) create(q Request, r *resource, body *unstructured.Unstructured) outcome {
	if s.objects[q.Key()] != nil {
		return refused(apierrors.NewAlreadyExists(r.groupResource(), body.GetName()))
	}
	if err := r.decode(body); err != nil {
		return refused(asStatus(err))
	}
	empty, _ := r.New(r.GroupVersionKind)
	return s.created(q, r, r.managers[""].UpdateNoErrors(empty, body, q.Manager).(*unstructured.Unstructured))
}

// createByApply makes an object by server-side apply.
func (s *Server) createByApply(q Request, r *resource, body *unstructured.Unstructured) outcome {
	empty, _ := r.New(r.GroupVersionKind)
	o, err := r.managers[""].Apply(empty, body, q.Manager, q.Force)
	if err != nil {
		return refused(asStatus(err))
	}
	u := o.(*unstructured.Unstructured)
	if uid := u.GetUID(); uid != "" {
		return refused(apierrors.NewConflict(r.groupResource(), u.GetName(),
			fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", uid)))
	}
	return s.created(q, r, u)
}

func (s *Server) created(q Request, r *resource, u *unstructured.Unstructured) outcome {
	if r.managers["status"] != nil {
		delete(u.Object, "status")
	}
	if r.custom == nil {
		if err := r.typed(u); err != nil { // an empty status where the Go type has one
			return refused(asStatus(err))
		}
	}
	if r.generation {
		u.SetGeneration(1)
	}
	if errs := r.validate(u); len(errs) > 0 {
		return refused(invalid(r, u.GetName(), errs...))
	}
	u.SetCreationTimestamp(metav1.Time{Time: s.second()})
	s.stamp(u, nil)
	if q.DryRun {
		return outcome{answer: r.asRead(u)}
	}
	u.SetUID(s.newUID(q.Key()))
	v := s.next(q.Key(), r, u)
	return outcome{answer: v.Object, version: v, named: true}
}

// delete marks an object that has finalizers, and removes any other one.
func (s *Server) delete(q Request, r *resource, existing *Version) outcome {
	old := existing.Object
	if p := q.Preconditions; p != nil {
		if p.UID != nil && *p.UID != old.GetUID() {
			return refused(preconditionFailed(r, old.GetName(), fmt.Sprintf("UID in precondition: %s, UID in object meta: %s", *p.UID, old.GetUID())))
		}
		if p.ResourceVersion != nil && *p.ResourceVersion != old.GetResourceVersion() {
			return refused(preconditionFailed(r, old.GetName(),
				fmt.Sprintf("ResourceVersion in precondition: %s, ResourceVersion in object meta: %s", *p.ResourceVersion, old.GetResourceVersion())))
		}
	}
	if q.DryRun {
		return outcome{}
	}
	return s.removed(q.Key(), r)
}

func preconditionFailed(r *resource, name, why string) error {
	about := schema.GroupResource{Group: r.Group, Resource: r.Kind}
	return apierrors.NewConflict(about, name, fmt.Errorf("Precondition failed: %s", why)) //nolint:staticcheck // the API server's words
}

// removed is an object deleted, or marked when it has finalizers.
func (s *Server) removed(key Key, r *resource) outcome {
	old := s.objects[key].Object
	switch {
	case len(old.GetFinalizers()) == 0:
		return outcome{deleted: true}
	case old.GetDeletionTimestamp() != nil:
		return outcome{}
	}
	u := old.DeepCopy()
	u.SetDeletionTimestamp(&metav1.Time{Time: s.second()})
	u.SetDeletionGracePeriodSeconds(ptr.To[int64](0))
	if r.generation {
		u.SetGeneration(u.GetGeneration() + 1)
	}
	return outcome{version: s.next(key, r, u)}
}

// stamp gives the entries of managedFields that were written just now the server's own time, and the order that goes with it: the
// field manager knows only the real time.
func (s *Server) stamp(u, old *unstructured.Unstructured) {
	entries := u.GetManagedFields()
	now := metav1.Time{Time: s.second()}
	for i := range entries {
		if t := entries[i].Time; t != nil && !slices.ContainsFunc(entriesOf(old), func(e metav1.ManagedFieldsEntry) bool { return e.Time.Equal(t) }) {
			entries[i].Time = &now
		}
	}
	slices.SortFunc(entries, compareEntries)
	u.SetManagedFields(entries)
}

func entriesOf(u *unstructured.Unstructured) []metav1.ManagedFieldsEntry {
	if u == nil {
		return nil
	}
	return u.GetManagedFields()
}
