package quiescence

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hduolab/quell/controller/storm"
	"github.com/hduolab/quell/controller/storm/live"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

// watches feed a record from informers, which outlive lost connections.
type watches struct {
	client dynamic.Interface
	record *record
	all    sync.WaitGroup
	places []place
}

// start returns once everything has been listed, or at the first error that no retry heals; an informer itself tries for ever.
func (w *watches) start(ctx context.Context, resources []live.Resource, namespaces []string) error {
	starting, refuse := context.WithCancelCause(ctx)
	defer refuse(nil)
	var synced []cache.InformerSynced
	for _, resource := range resources {
		for _, namespace := range scopes(resource, namespaces) {
			informer := dynamicinformer.NewFilteredDynamicInformer(
				w.client, resource.GroupVersionResource, namespace, 0, cache.Indexers{}, nil).Informer()
			registration, err := informer.AddEventHandler(handler{resource.GroupResource(), w.record})
			if err == nil {
				err = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
					if isFinal(err) {
						refuse(err)
					}
				})
			}
			if err != nil {
				return fmt.Errorf("quiescence: set up the watch of %s: %w", resource.GroupResource(), err)
			}
			synced = append(synced, registration.HasSynced)
			w.places = append(w.places, place{w.client.Resource(resource.GroupVersionResource).Namespace(namespace), informer.GetStore()})
			w.all.Go(func() { informer.RunWithContext(ctx) })
		}
	}
	if !cache.WaitForCacheSync(starting.Done(), synced...) {
		return fmt.Errorf("quiescence: list and watch: %w", context.Cause(starting))
	}
	return nil
}

// catchUpTime is how long a watch may take to see what a list shows.
const catchUpTime = 10 * time.Second

// catchUp returns once the watches have seen all there is to be seen. One that has failed looks like one of a quiet resource.
func (w *watches) catchUp(ctx context.Context) error {
	for _, place := range w.places {
		var behind error
		err := wait.PollUntilContextTimeout(ctx, time.Second, catchUpTime, true, func(ctx context.Context) (bool, error) {
			behind = place.behind(ctx)
			return behind == nil, nil
		})
		if err != nil {
			return fmt.Errorf("quiescence: whether it was quiet is not known: %w", errors.Join(behind, context.Cause(ctx)))
		}
	}
	return nil
}

// place is one resource, in one namespace or all of them.
type place struct {
	client dynamic.ResourceInterface
	seen   cache.Store
}

// behind says what a list shows that the watch has not seen.
func (p place) behind(ctx context.Context) error {
	list, err := p.client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list at the end: %w", err)
	}
	for i := range list.Items {
		seen, found, err := p.seen.Get(&list.Items[i])
		if u, isObject := seen.(*unstructured.Unstructured); err != nil || !found || !isObject || u.GetResourceVersion() != list.Items[i].GetResourceVersion() {
			return fmt.Errorf("the watch has not seen the latest version of %s %s", list.Items[i].GetKind(), list.Items[i].GetName())
		}
	}
	if n := len(p.seen.ListKeys()); n != len(list.Items) {
		return fmt.Errorf("the watch has seen %d objects, a list has %d", n, len(list.Items))
	}
	return nil
}

func isFinal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

func (w *watches) wait() { w.all.Wait() }

// scopes are the namespaces to watch a resource in; "" is all of them.
func scopes(resource live.Resource, namespaces []string) []string {
	switch {
	case len(namespaces) == 0:
		return []string{metav1.NamespaceAll}
	case resource.IsNamespaced:
		return namespaces
	}
	return nil
}

// handler takes the events of one resource.
type handler struct {
	resource schema.GroupResource
	record   *record
}

func (h handler) OnAdd(object any, isInInitialList bool) {
	version, isObject := h.change(object)
	switch {
	case !isObject:
	case isInInitialList:
		h.record.list(version)
	default:
		made := storm.Compare(storm.Change{Key: version.Key}, version)
		h.record.add(Write{version.Key, Created, version.Time, storm.Difference{Writer: made.Writer, IsLikely: made.IsLikely}}, version)
	}
}

func (h handler) OnUpdate(before, after any) {
	older, wasObject := h.change(before)
	newer, isObject := h.change(after)
	// A list that is read anew brings every object, also those that are as they were.
	if wasObject && isObject && older.ResourceVersion != newer.ResourceVersion {
		h.record.add(Write{newer.Key, Changed, newer.Time, storm.Compare(older, newer)}, newer)
	}
}

func (h handler) OnDelete(object any) {
	if unknown, isUnknown := object.(cache.DeletedFinalStateUnknown); isUnknown {
		object = unknown.Obj
	}
	if version, isObject := h.change(object); isObject {
		version.Type = storm.Deleted
		h.record.add(Write{Object: version.Key, Action: Deleted, Time: version.Time}, version)
	}
}

func (h handler) change(object any) (storm.Change, bool) {
	u, isObject := object.(*unstructured.Unstructured)
	if !isObject {
		return storm.Change{}, false
	}
	return storm.Change{
		Key: storm.Key{GroupResource: h.resource, Namespace: u.GetNamespace(), Name: u.GetName()}, Time: time.Now(),
		UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(), Generation: u.GetGeneration(),
		ManagedFields: u.GetManagedFields(), Object: u.Object,
	}, true
}
