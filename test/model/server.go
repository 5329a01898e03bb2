package model

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Key identifies an object of a Server.
type Key struct {
	schema.GroupKind
	types.NamespacedName
}

// String is the key as a person would write it.
func (k Key) String() string { return k.Kind + " " + k.Name }

// Version is one version of an object. It is never changed.
type Version struct {
	// Object is what readers get.
	Object *unstructured.Unstructured
	// persisted is what was written: without the defaults that reading adds.
	persisted map[string]any
	// typed is Object in its Go type, made when it is first asked for.
	typed func() (client.Object, error)
	// digest identifies the content, with what was written of it.
	digest func() Digest
	// forms are what caches made of it, by the function that made it.
	forms sync.Map
}

func newVersion(k *Kinds, u *unstructured.Unstructured, persisted map[string]any) *Version {
	v := &Version{Object: u, persisted: persisted}
	v.typed = sync.OnceValues(func() (client.Object, error) {
		o, err := k.scheme.New(u.GroupVersionKind())
		if err != nil {
			return nil, err
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o); err != nil {
			return nil, err
		}
		o.GetObjectKind().SetGroupVersionKind(u.GroupVersionKind())
		return o.(client.Object), nil
	})
	v.digest = sync.OnceValue(func() Digest {
		raw, err := json.Marshal([]any{u.Object, persisted})
		if err != nil {
			panic(fmt.Sprintf("model: encode %s %s: %v", u.GetKind(), u.GetName(), err))
		}
		return sha256.Sum256(raw)
	})
	return v
}

// Event is a step of one object.
type Event struct {
	Key
	// Before is nil for an object that was created, After for one that was deleted.
	Before, After *Version
}

// String tells the step in words.
func (e Event) String() string {
	switch {
	case e.Before == nil:
		return e.Key.String() + " appears"
	case e.After == nil:
		return e.Key.String() + " disappears"
	}
	return fmt.Sprintf("%s has version %s", e.Key, e.After.Object.GetResourceVersion())
}

// counters go on when an object of the same name is made again.
type counters struct{ version, uid int }

// Server is a small, deterministic API server. It is not safe for concurrent use.
type Server struct {
	kinds    *Kinds
	now      func() time.Time
	objects  map[Key]*Version
	counters map[Key]counters
	logs     map[schema.GroupKind][]Event
}

// NewServer returns an empty server whose time is now, cut to seconds.
func NewServer(kinds *Kinds, now func() time.Time) *Server {
	return &Server{
		kinds: kinds, now: now, objects: map[Key]*Version{}, counters: map[Key]counters{}, logs: map[schema.GroupKind][]Event{},
	}
}

// Object is the newest version of an object, nil when there is none.
func (s *Server) Object(key Key) *unstructured.Unstructured {
	if v := s.objects[key]; v != nil {
		return v.Object
	}
	return nil
}

// Keys are those of all objects, sorted.
func (s *Server) Keys() []Key { return slices.SortedFunc(maps.Keys(s.objects), compareKeys) }

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// next is the version that an object has after the one that it has now. Versions are counted for each object by itself: two of
// different objects may never be compared, and so what does not depend on each other gives the same state in any order.
func (s *Server) next(key Key, r *resource, u *unstructured.Unstructured) *Version {
	u.SetResourceVersion(strconv.Itoa(1001 + s.counters[key].version))
	u = r.asWritten(u)
	return newVersion(s.kinds, r.asRead(u), u.Object)
}

// asWritten is what the storage gets of an object.
func (r *resource) asWritten(u *unstructured.Unstructured) *unstructured.Unstructured {
	if r.custom != nil {
		u = u.DeepCopy()
		if err := r.prune(u); err != nil {
			panic(fmt.Sprintf("model: metadata of %s %s: %v", r.Kind, u.GetName(), err))
		}
	}
	return u
}

// asRead is what readers get of an object that was written.
func (r *resource) asRead(u *unstructured.Unstructured) *unstructured.Unstructured {
	if r.custom != nil {
		u = u.DeepCopy()
		r.Default(u)
	}
	return u
}

// newUID is one that no object of this server has had.
func (s *Server) newUID(key Key) types.UID {
	return types.UID(fmt.Sprintf("%s-%s-%s-%d", key.Kind, key.Namespace, key.Name, s.counters[key].uid+1))
}

// copied is a server in the same state, which goes its own way from here.
func (s *Server) copied(now func() time.Time) *Server {
	return &Server{kinds: s.kinds, now: now, objects: maps.Clone(s.objects), counters: maps.Clone(s.counters), logs: maps.Clone(s.logs)}
}

func (s *Server) resource(gvk schema.GroupVersionKind) (*resource, error) {
	r := s.kinds.resources[gvk.GroupKind()]
	if r == nil || r.Version != gvk.Version {
		return nil, noMatch(gvk)
	}
	return r, nil
}

// get reads one version.
func (s *Server) get(r *resource, key types.NamespacedName) (*Version, error) {
	if v := s.objects[Key{r.GroupKind(), key}]; v != nil {
		return v, nil
	}
	return nil, apierrors.NewNotFound(r.groupResource(), key.Name)
}

// list is in the order of the names.
func (s *Server) list(gk schema.GroupKind, namespace string) []*Version {
	var list []*Version
	for _, key := range s.Keys() {
		if key.GroupKind == gk && (namespace == "" || key.Namespace == namespace) {
			list = append(list, s.objects[key])
		}
	}
	return list
}

// CollectGarbage deletes the objects whose owners are all gone, as the garbage collector does, and tells how many that were.
func (s *Server) CollectGarbage() int {
	deleted := 0
	for _, key := range s.Keys() {
		if owners := s.objects[key].Object.GetOwnerReferences(); len(owners) > 0 && !slices.ContainsFunc(owners, s.exists(key.Namespace)) {
			s.commit(key, s.removed(key, s.kinds.resources[key.GroupKind]))
			deleted++
		}
	}
	return deleted
}

// HasGarbage tells whether CollectGarbage has something to do.
func (s *Server) HasGarbage() bool { return s.copied(s.now).CollectGarbage() > 0 }

func (s *Server) exists(namespace string) func(metav1.OwnerReference) bool {
	return func(o metav1.OwnerReference) bool {
		gv, err := schema.ParseGroupVersion(o.APIVersion)
		owner := s.objects[Key{schema.GroupKind{Group: gv.Group, Kind: o.Kind}, types.NamespacedName{Namespace: namespace, Name: o.Name}}]
		return err == nil && owner != nil && owner.Object.GetUID() == o.UID
	}
}
