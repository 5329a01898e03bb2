package eventfilter_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hduolab/quell/controller/eventfilter"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

const (
	manager     = "operator"
	available   = `{"type": "Available", "status": "True", "lastUpdateTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}`
	progressing = `{"type": "Progressing", "status": "True", "lastUpdateTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}`
)

var (
	types = applyconfigurations.NewTypeConverter(scheme.Scheme)
	gvk   = appsv1.SchemeGroupVersion.WithKind("Deployment")
	own   = eventfilter.OwnWrites{Manager: manager, Subresource: "status", Types: types, Scheme: scheme.Scheme}
)

// server is the API server's own field management, for one object's status.
type server struct {
	t testing.TB
	managedfieldstest.TestFieldManager
	version int
	now     time.Time
}

func newServer(t testing.TB) *server {
	s := &server{t, managedfieldstest.NewTestFieldManagerSubresource(types, gvk, "status"), 0, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	s.apply(manager, `{"replicas": 1, "conditions": [`+available+`]}`)
	return s
}

func (s *server) object(status string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(fmt.Appendf(nil, `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "status": %s}`, status)); err != nil {
		s.t.Fatal(err)
	}
	return u
}

func (s *server) apply(manager, status string) {
	if err := s.Apply(s.object(status), manager, true); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) update(manager string, change func(status map[string]any)) {
	u := s.Live().DeepCopyObject().(*unstructured.Unstructured)
	change(u.Object["status"].(map[string]any))
	if err := s.Update(u, manager); err != nil {
		s.t.Fatal(err)
	}
}

// see is the object as a typed cache holds it, its entries' times those of the managers in written.
func (s *server) see(written ...string) *appsv1.Deployment {
	d := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(s.Live().(*unstructured.Unstructured).Object, d); err != nil {
		s.t.Fatal(err)
	}
	d.TypeMeta = metav1.TypeMeta{}
	s.version++
	d.ResourceVersion = strconv.Itoa(s.version)
	d.ManagedFields = s.ManagedFields()
	for i := range d.ManagedFields {
		at := s.now
		for _, m := range written {
			if d.ManagedFields[i].Manager == m {
				at = at.Add(time.Duration(s.version) * time.Second)
			}
		}
		d.ManagedFields[i].Time = &metav1.Time{Time: at}
	}
	return d
}

func TestOwnWritesDropped(t *testing.T) {
	cases := map[string]struct {
		step func(s *server) (wrote []string)
		meta func(d *appsv1.Deployment)
		pass bool
	}{
		"our own change of a value": {step: func(s *server) []string {
			s.apply(manager, `{"replicas": 2, "conditions": [`+available+`]}`)
			return []string{manager}
		}},
		"our own change of a value within the same second": {step: func(s *server) []string {
			s.apply(manager, `{"replicas": 2, "conditions": [`+available+`]}`)
			return nil
		}},
		"our own new condition": {step: func(s *server) []string {
			s.apply(manager, `{"replicas": 1, "conditions": [`+available+`, `+progressing+`]}`)
			return []string{manager}
		}},
		"our own removal of a field": {step: func(s *server) []string {
			s.apply(manager, `{"conditions": [`+available+`]}`)
			return []string{manager}
		}},
		"nothing but our entry's time": {step: func(*server) []string { return []string{manager} }},
		"a foreign field beside ours": {pass: true, step: func(s *server) []string {
			s.apply("other", `{"updatedReplicas": 3}`)
			return []string{"other"}
		}},
		"a foreign condition beside ours": {pass: true, step: func(s *server) []string {
			s.apply("other", `{"conditions": [{"type": "Foreign", "status": "True"}]}`)
			return []string{"other"}
		}},
		"a foreign field that takes over ours": {pass: true, step: func(s *server) []string {
			s.apply("other", `{"replicas": 5}`)
			return []string{"other"}
		}},
		"a foreign update of our field": {pass: true, step: func(s *server) []string {
			s.update("kubectl-edit", func(status map[string]any) { status["replicas"] = int64(7) })
			return []string{"kubectl-edit"}
		}},
		"a foreign removal of our field, which leaves no entry": {pass: true, step: func(s *server) []string {
			s.update("kubectl-edit", func(status map[string]any) { delete(status, "replicas") })
			return nil
		}},
		"a foreign wipe of all of our fields": {pass: true, step: func(s *server) []string {
			s.update("kubectl-edit", func(status map[string]any) { clear(status) })
			return nil
		}},
		"a foreign field and ours in one event": {pass: true, step: func(s *server) []string {
			s.apply("other", `{"updatedReplicas": 3}`)
			s.apply(manager, `{"replicas": 2, "conditions": [`+available+`]}`)
			return []string{"other", manager}
		}},
		"a new generation":      {pass: true, meta: func(d *appsv1.Deployment) { d.Generation++ }},
		"a new label":           {pass: true, meta: func(d *appsv1.Deployment) { d.Labels = map[string]string{"a": "b"} }},
		"a new annotation":      {pass: true, meta: func(d *appsv1.Deployment) { d.Annotations = map[string]string{"a": "b"} }},
		"a new finalizer":       {pass: true, meta: func(d *appsv1.Deployment) { d.Finalizers = []string{"a/b"} }},
		"a new owner":           {pass: true, meta: func(d *appsv1.Deployment) { d.OwnerReferences = []metav1.OwnerReference{{Name: "a"}} }},
		"the start of deletion": {pass: true, meta: func(d *appsv1.Deployment) { d.DeletionTimestamp = &metav1.Time{Time: time.Now()} }},
		"another object":        {pass: true, meta: func(d *appsv1.Deployment) { d.UID = "other" }},
		"lost managedFields":    {pass: true, meta: func(d *appsv1.Deployment) { d.ManagedFields = nil }},
		"a resync":              {pass: true, meta: func(d *appsv1.Deployment) { d.ResourceVersion = "1" }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			older := s.see()
			var wrote []string
			if c.step != nil {
				wrote = c.step(s)
			}
			newer := s.see(wrote...)
			if c.meta != nil {
				c.meta(newer)
			}
			if got := own.Dropped().Update(event.UpdateEvent{ObjectOld: older, ObjectNew: newer}); got != c.pass {
				t.Errorf("passes = %v, want %v", got, c.pass)
			}
		})
	}
}

// An event that merges a foreign write and a later one of a foreign value within the same second must not be lost.
func TestOwnWritesSecondForeignWriteInOneSecond(t *testing.T) {
	s := newServer(t)
	s.apply("other", `{"updatedReplicas": 3}`)
	older := s.see()
	s.apply("other", `{"updatedReplicas": 4}`)
	newer := s.see()
	if !own.Dropped().Update(event.UpdateEvent{ObjectOld: older, ObjectNew: newer}) {
		t.Error("a foreign value changed without a trace in managedFields, and the event was dropped")
	}
}

func TestOwnWritesPassesOtherEvents(t *testing.T) {
	p, d := own.Dropped(), newServer(t).see()
	if !p.Create(event.CreateEvent{Object: d}) || !p.Delete(event.DeleteEvent{Object: d}) || !p.Generic(event.GenericEvent{Object: d}) {
		t.Error("creation, deletion and generic events must pass")
	}
	if !p.Update(event.UpdateEvent{ObjectNew: d}) {
		t.Error("an event without an old object must pass")
	}
}

func TestAsked(t *testing.T) {
	s := newServer(t)
	older := s.see()
	s.apply("other", `{"replicas": 9}`)
	newer := s.see()
	update := func(o client.Object) bool {
		return eventfilter.Asked().Update(event.UpdateEvent{ObjectOld: older, ObjectNew: o})
	}
	if update(newer) {
		t.Error("a status write passed")
	}
	newer.Generation++
	if !update(newer) {
		t.Error("a new generation was dropped")
	}
	if !update(older) {
		t.Error("a resync was dropped")
	}
}

func TestProjected(t *testing.T) {
	replicas := eventfilter.Projected(func(d *appsv1.Deployment) any { return d.Status.Replicas })
	s := newServer(t)
	older := s.see()
	s.apply("other", `{"updatedReplicas": 9}`)
	same := s.see()
	s.apply("other", `{"replicas": 9}`)
	other := s.see()
	if replicas.Update(event.UpdateEvent{ObjectOld: older, ObjectNew: same}) {
		t.Error("a change outside the projection passed")
	}
	if !replicas.Update(event.UpdateEvent{ObjectOld: same, ObjectNew: other}) {
		t.Error("a change of the projection was dropped")
	}
	if !replicas.Update(event.UpdateEvent{ObjectOld: older, ObjectNew: older}) {
		t.Error("a resync was dropped")
	}
	if !replicas.Create(event.CreateEvent{Object: older}) {
		t.Error("creation was dropped")
	}
}

func TestOwnedFields(t *testing.T) {
	s := newServer(t)
	d := s.see()
	before := eventfilter.OwnedFields(d, manager, "status")
	if before == "" || eventfilter.OwnedFields(d, manager, "") != "" || eventfilter.OwnedFields(d, "nobody", "status") != "" {
		t.Fatalf("owned fields are %q", before)
	}
	s.apply("other", `{"replicas": 5}`)
	if after := eventfilter.OwnedFields(s.see(), manager, "status"); after == before {
		t.Error("a lost field does not change the owned fields")
	}
}

func TestForeignFields(t *testing.T) {
	entry := func(manager, subresource, fields string, hour int) metav1.ManagedFieldsEntry {
		at := metav1.Date(2026, time.January, 1, hour, 0, 0, 0, time.UTC)
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: "Update", Subresource: subresource, Time: &at, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	foreign := func(entries ...metav1.ManagedFieldsEntry) string {
		return strings.Join(eventfilter.ForeignFields(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{ManagedFields: entries}}, manager), "\n")
	}
	const replicas = `{"f:spec":{"f:replicas":{}}}`
	a, b := entry("a", "", replicas, 1), entry("b", "scale", replicas, 1)
	before := foreign(a, b)
	for name, same := range map[string]string{
		"in another order, written later": foreign(b, entry("a", "", replicas, 2)),
		"beside ours and status":          foreign(a, entry("c", "status", replicas, 1), entry(manager, "", replicas, 1), b),
	} {
		if same != before {
			t.Errorf("%s: %s, before %s", name, same, before)
		}
	}
	for name, other := range map[string]string{
		"one has let go":         foreign(b),
		"one has another field":  foreign(a, entry("b", "scale", `{"f:spec":{}}`, 1)),
		"one has another name":   foreign(a, entry("c", "scale", replicas, 1)),
		"nobody else is left":    foreign(),
		"one writes as the spec": foreign(a, entry("b", "", replicas, 1)),
	} {
		if other == before {
			t.Errorf("%s: the same, %s", name, other)
		}
	}
}
