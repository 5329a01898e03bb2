package model

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// informers are an operator's cache: what it has heard of each kind, which is what the server had at an earlier moment. It is a
// cache.Cache for the sources of a controller, and the source of the operator's client.
type informers struct {
	cache.Cache // nil: whatever is not modelled panics
	kinds       *Kinds

	mu       sync.Mutex // the sources of a controller start in goroutines of their own
	byKind   map[schema.GroupKind]*informer
	indexers map[schema.GroupKind]map[string]client.IndexerFunc
}

// informer is the cache of one kind.
type informer struct {
	cache.Informer // nil: whatever is not modelled panics
	kinds          *Kinds
	gvk            schema.GroupVersionKind
	selector       labels.Selector
	transform      toolscache.TransformFunc
	handlers       []subscriber
	// objects are what is known, at is how many events of the server's log that is.
	objects map[types.NamespacedName]*Version
	at      int
}

// subscriber is a handler and the form in which it gets objects.
type subscriber struct {
	toolscache.ResourceEventHandler
	metadata bool
}

func newInformers(kinds *Kinds, options cache.Options) (*informers, error) {
	c := &informers{kinds: kinds, byKind: map[schema.GroupKind]*informer{}, indexers: map[schema.GroupKind]map[string]client.IndexerFunc{}}
	for o, by := range options.ByObject {
		gvk, err := apiutil.GVKForObject(o, kinds.scheme)
		if err != nil {
			return nil, err
		}
		i := c.of(gvk)
		i.selector, i.transform = by.Label, by.Transform
	}
	return c, nil
}

// of is the informer of a kind, made when it is first asked for.
func (c *informers) of(gvk schema.GroupVersionKind) *informer {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.byKind[gvk.GroupKind()]
	if i == nil {
		i = &informer{kinds: c.kinds, gvk: gvk, objects: map[types.NamespacedName]*Version{}}
		c.byKind[gvk.GroupKind()] = i
	}
	return i
}

// watched are the kinds that somebody listens to and the server has, sorted.
func (c *informers) watched(s *Server) []*informer {
	var all []*informer
	for gk, i := range c.byKind {
		if len(i.handlers) > 0 && s.kinds.resources[gk] != nil {
			all = append(all, i)
		}
	}
	slices.SortFunc(all, func(a, b *informer) int {
		return compareKeys(Key{GroupKind: a.gvk.GroupKind()}, Key{GroupKind: b.gvk.GroupKind()})
	})
	return all
}

// GetInformer is what a controller's source asks for.
func (c *informers) GetInformer(_ context.Context, o client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	gvk, err := apiutil.GVKForObject(o, c.kinds.scheme)
	if err != nil {
		return nil, err
	}
	_, metadata := o.(*metav1.PartialObjectMetadata)
	return &subscription{informer: c.of(gvk), mu: &c.mu, metadata: metadata}, nil
}

func (c *informers) WaitForCacheSync(context.Context) bool { return true }

// IndexField makes a client.FieldIndexer.
func (c *informers) IndexField(_ context.Context, o client.Object, field string, by client.IndexerFunc) error {
	gvk, err := apiutil.GVKForObject(o, c.kinds.scheme)
	if err != nil {
		return err
	}
	if c.indexers[gvk.GroupKind()] == nil {
		c.indexers[gvk.GroupKind()] = map[string]client.IndexerFunc{}
	}
	c.indexers[gvk.GroupKind()][field] = by
	return nil
}

// subscription is how one handler comes to an informer.
type subscription struct {
	*informer
	mu       *sync.Mutex
	metadata bool
}

func (s *subscription) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, _ toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handlers = append(s.handlers, subscriber{h, s.metadata})
	return registered{}, nil
}

// registered is a handler that has seen everything that it is to see at its start.
type registered struct {
	toolscache.ResourceEventHandlerRegistration
}

func (registered) HasSynced() bool { return true }

// start fills the cache with what the server has, and tells the handlers.
func (i *informer) start(s *Server) error {
	i.at = len(s.logs[i.gvk.GroupKind()])
	for _, v := range s.list(i.gvk.GroupKind(), "") {
		if err := i.step(Event{Key: Key{i.gvk.GroupKind(), client.ObjectKeyFromObject(v.Object)}, After: v}, true); err != nil {
			return err
		}
	}
	return nil
}

// pending is the next event that the cache has not heard of.
func (i *informer) pending(s *Server) (Event, bool) {
	log := s.logs[i.gvk.GroupKind()]
	if i.at >= len(log) {
		return Event{}, false
	}
	return log[i.at], true
}

// deliver takes the next event. It tells whether that changed the cache.
func (i *informer) deliver(s *Server) error {
	e, found := i.pending(s)
	if !found {
		return fmt.Errorf("model: nothing to deliver of %s", i.gvk.Kind)
	}
	i.at++
	return i.step(e, false)
}

// skip takes the events that the cache's selector hides, so that they are no moves.
func (i *informer) skip(s *Server) {
	for {
		e, found := i.pending(s)
		if !found || i.objects[e.NamespacedName] != nil || i.selects(e.After) {
			return
		}
		i.at++
	}
}

func (i *informer) selects(v *Version) bool {
	return v != nil && (i.selector == nil || i.selector.Matches(labels.Set(v.Object.GetLabels())))
}

// step takes one event: what stops matching the selector disappears, what begins to match it appears.
func (i *informer) step(e Event, initial bool) error {
	before := i.objects[e.NamespacedName]
	var after *Version
	if i.selects(e.After) {
		var err error
		if after, err = i.transformed(e.After); err != nil {
			return err
		}
	}
	if after == nil {
		delete(i.objects, e.NamespacedName)
	} else {
		i.objects[e.NamespacedName] = after
	}
	for _, h := range i.handlers {
		if err := h.tell(before, after, initial); err != nil {
			return err
		}
	}
	return nil
}

// transformed is what the cache keeps of a version, made once.
func (i *informer) transformed(v *Version) (*Version, error) {
	if i.transform == nil {
		return v, nil
	}
	by := reflect.ValueOf(i.transform).Pointer()
	if made, found := v.forms.Load(by); found {
		return made.(*Version), nil
	}
	made, err := i.transformNow(v)
	if err == nil {
		v.forms.Store(by, made)
	}
	return made, err
}

func (i *informer) transformNow(v *Version) (*Version, error) {
	o, err := v.typed()
	if err != nil {
		return nil, err
	}
	made, err := i.transform(o.DeepCopyObject())
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(made)
	if err != nil {
		return nil, err
	}
	kept := newVersion(i.kinds, &unstructured.Unstructured{Object: content}, nil)
	kept.typed = func() (client.Object, error) { return made.(client.Object), nil }
	return kept, nil
}

func (h subscriber) tell(before, after *Version, initial bool) error {
	old, err := h.form(before)
	if err != nil {
		return err
	}
	is, err := h.form(after)
	switch {
	case err != nil:
		return err
	case before == nil && after == nil:
	case before == nil:
		h.OnAdd(is, initial)
	case after == nil:
		h.OnDelete(old)
	default:
		h.OnUpdate(old, is)
	}
	return nil
}

func (h subscriber) form(v *Version) (client.Object, error) {
	switch {
	case v == nil:
		return nil, nil
	case h.metadata:
		m := &metav1.PartialObjectMetadata{}
		return m, runtime.DefaultUnstructuredConverter.FromUnstructured(metadataOf(v.Object), m)
	}
	return v.typed()
}

func (c *informers) get(_ context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*Version, error) {
	r := c.kinds.resources[gvk.GroupKind()]
	if r == nil {
		return nil, noMatch(gvk)
	}
	if v := c.of(gvk).objects[key]; v != nil {
		return v, nil
	}
	return nil, apierrors.NewNotFound(r.groupResource(), key.Name)
}

// list selects by namespace and by the fields that are indexed.
func (c *informers) list(_ context.Context, gvk schema.GroupVersionKind, o *client.ListOptions) ([]*Version, error) {
	var list []*Version
	for _, v := range c.of(gvk).sorted() {
		if o.Namespace != "" && v.Object.GetNamespace() != o.Namespace {
			continue
		}
		fits, err := c.fits(gvk, v, o)
		if err != nil {
			return nil, err
		}
		if fits {
			list = append(list, v)
		}
	}
	return list, nil
}

// sorted are the objects that are known, in the order of their names.
func (i *informer) sorted() []*Version {
	var list []*Version
	for _, key := range slices.SortedFunc(maps.Keys(i.objects), func(a, b types.NamespacedName) int {
		return compareKeys(Key{NamespacedName: a}, Key{NamespacedName: b})
	}) {
		list = append(list, i.objects[key])
	}
	return list
}

func (c *informers) fits(gvk schema.GroupVersionKind, v *Version, o *client.ListOptions) (bool, error) {
	if o.FieldSelector == nil {
		return true, nil
	}
	for _, r := range o.FieldSelector.Requirements() {
		by := c.indexers[gvk.GroupKind()][r.Field]
		if by == nil {
			return false, fmt.Errorf("model: %s has no index %q", gvk.Kind, r.Field)
		}
		typed, err := v.typed()
		if err != nil {
			return false, err
		}
		if !slices.Contains(by(typed), r.Value) {
			return false, nil
		}
	}
	return true, nil
}

// relist brings the cache to what the server has now, as after a watch that ended: of several steps of one object only the last is
// told.
func (i *informer) relist(s *Server) error {
	log := s.logs[i.gvk.GroupKind()][i.at:]
	i.at += len(log)
	for n, e := range log {
		last := !slices.ContainsFunc(log[n+1:], func(later Event) bool { return later.NamespacedName == e.NamespacedName })
		if !last {
			continue
		}
		if err := i.step(e, false); err != nil {
			return err
		}
	}
	return nil
}
