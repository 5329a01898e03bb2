package storm_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/hduolab/quell/controller/storm"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
)

var (
	deployment  = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	deployments = schema.GroupResource{Group: "apps", Resource: "deployments"}
	start       = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	converter   = applyconfigurations.NewTypeConverter(scheme.Scheme)
)

// stream is an object that the API server's own merge code keeps, and whose versions go to a detector. Its clock is that of
// the test, also in managedFields.
type stream struct {
	t        *testing.T
	detector *storm.Detector
	server   managedfieldstest.TestFieldManager
	key      storm.Key
	now      time.Time
	times    map[fieldowners.Owner]metav1.Time
	version  int
	// generation is raised by changes of the spec.
	generation int64
	uid        types.UID
	metadata   bool
	before     map[string]any
}

func newStream(t *testing.T, d *storm.Detector, name string) *stream {
	return &stream{
		t: t, detector: d, server: managedfieldstest.NewTestFieldManager(converter, deployment), now: start, uid: "1", generation: 1,
		key: storm.Key{GroupResource: deployments, Namespace: "team-a", Name: name}, times: map[fieldowners.Owner]metav1.Time{},
	}
}

func (s *stream) object(body string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	text := fmt.Appendf(nil, `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": %q, "annotations": {}}}`, s.key.Name)
	if err := u.UnmarshalJSON(text); err != nil {
		s.t.Fatal(err)
	}
	var content map[string]any
	if err := json.Unmarshal([]byte("{"+body+"}"), &content); err != nil {
		s.t.Fatalf("%v in %s", err, body)
	}
	merge(u.Object, (&unstructured.Unstructured{Object: content}).DeepCopy().Object)
	unstructured.RemoveNestedField(u.Object, "metadata", "annotations", "none")
	return u
}

// merge puts content over an object as a JSON merge patch does.
func merge(object, content map[string]any) {
	for k, v := range content {
		below, isMap := v.(map[string]any)
		there, isThere := object[k].(map[string]any)
		switch {
		case v == nil:
			delete(object, k)
		case isMap && isThere:
			merge(there, below)
		default:
			object[k] = v
		}
	}
}

func (s *stream) apply(manager, body string) {
	s.t.Helper()
	s.must(s.server.Apply(s.object(body), manager, true))
	s.publish(fieldowners.Owner{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1"})
}

// update is a merge patch.
func (s *stream) update(manager, body string) {
	s.t.Helper()
	u := s.server.Live().(*unstructured.Unstructured)
	merge(u.Object, s.object(body).Object)
	s.must(s.server.Update(u, manager))
	s.publish(fieldowners.Owner{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v1"})
}

func (s *stream) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// publish hands on the version, unless the write changed nothing, not even an owner.
func (s *stream) publish(writer fieldowners.Owner) {
	live := s.server.Live().(*unstructured.Unstructured)
	content := live.DeepCopy()
	managed := content.GetManagedFields()
	for i := range managed {
		managed[i].Time = nil
	}
	content.SetManagedFields(managed)
	if reflect.DeepEqual(s.before, content.Object) {
		return
	}
	if spec := content.Object["spec"]; s.before != nil && !reflect.DeepEqual(spec, s.before["spec"]) {
		s.generation++
	}
	s.before = content.Object
	s.times[writer] = metav1.NewTime(s.now.Truncate(time.Second))
	s.send(live)
}

func (s *stream) send(live *unstructured.Unstructured) {
	managed := live.GetManagedFields()
	for i := range managed {
		when := s.times[fieldowners.OwnerOf(&managed[i])]
		managed[i].Time = &when
	}
	live.SetManagedFields(managed)
	s.version++
	c := storm.Change{Key: s.key, Time: s.now, UID: s.uid, Generation: s.generation, ManagedFields: managed}
	c.ResourceVersion = fmt.Sprint(s.version)
	if !s.metadata {
		c.Object = live.Object
	}
	s.detector.Observe(c)
}

// writes calls a function n times, a pause apart.
func (s *stream) writes(n int, pause time.Duration, write func(i int)) {
	for i := range n {
		write(i)
		s.now = s.now.Add(pause)
	}
}

func condition(status, message string, when time.Time) string {
	return fmt.Sprintf(`{"type": "Ready", "status": %q, "message": %q, "lastUpdateTime": %q}`, status, message, when.Format(time.RFC3339Nano))
}
