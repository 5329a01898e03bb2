package app

import (
	"errors"
	"slices"
	"sync"

	"github.com/hduolab/quell/controller/ssa"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sighting tells what a reconcile observed, by the identity of the objects in the cache. Objects in a cache are never changed but
// replaced, so as long as it holds the very same ones, everything that is decided from them is the same; no version has to be
// trusted.
type sighting struct {
	// objects are the App, then its children in the order of kinds, nil for one that does not exist, then the autoscalers.
	objects    []*metav1.ManagedFieldsEntry
	configHash string
	// noRoutes tells that the cluster does not serve HTTPRoutes.
	noRoutes bool
}

// sight returns the sighting of what was observed, false when it has something in it that a sighting cannot tell. It has to be
// taken of the cache's own objects, not of copies.
func (o observed) sight() (sighting, bool) {
	s := sighting{configHash: o.configHash, noRoutes: errors.Is(o.routeError, errGatewayMissing)}
	ok := s.add(o.app)
	for _, k := range kinds {
		if live := o.live[k.name]; live == nil {
			s.objects = append(s.objects, nil)
		} else {
			ok = s.add(live) && ok
		}
	}
	for i := range o.scalers {
		ok = s.add(&o.scalers[i]) && ok
	}
	return s, ok && o.configStalled == nil && o.configMoving == nil && len(o.former) == 0 && (o.routeError == nil || s.noRoutes)
}

// add notes an object by the address of its list of managedFields, which no other object in memory has; false for one without.
func (s *sighting) add(o client.Object) bool {
	entries := o.GetManagedFields()
	if len(entries) == 0 {
		return false
	}
	s.objects = append(s.objects, &entries[0])
	return true
}

func (s sighting) is(other sighting) bool {
	return slices.Equal(s.objects, other.objects) && s.configHash == other.configHash && s.noRoutes == other.noRoutes
}

// settlements are the Apps of which the last reconcile found nothing to do, with what it observed. Safe for concurrent use.
type settlements struct {
	mu   sync.Mutex
	apps map[types.NamespacedName]sighting
}

func newSettlements() *settlements { return &settlements{apps: map[types.NamespacedName]sighting{}} }

// has reports whether the last reconcile of an App observed the same and found nothing to do.
func (l *settlements) has(key types.NamespacedName, s sighting) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, found := l.apps[key]
	return found && last.is(s)
}

// note keeps the sighting of a reconcile that found nothing to do, and forgets that of any other.
func (l *settlements) note(key types.NamespacedName, s sighting, settled bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.apps, key)
	if settled {
		l.apps[key] = s
	}
}

// isSettled reports whether a reconcile found nothing to do and has nothing to wait for, and that from memory alone: then it is a
// function of what was observed, and of no time and no request.
func isSettled(children []applied, status ssa.Result, next ctrl.Result) bool {
	return next.IsZero() && status.Remembered && !slices.ContainsFunc(children, func(c applied) bool { return !c.isSettled() })
}

// isSettled reports whether a child is known to be as the App asks, or is neither wanted nor there.
func (a applied) isSettled() bool {
	absent := !a.wanted && a.live == nil && a.Outcome == ""
	return a.err == nil && a.foreign == "" && !a.leaving && !a.pending && a.stalled == nil && a.moving == nil && (a.Remembered || absent)
}

// copied is what was observed with objects of its own in place of the cache's, which must not be changed.
func (r *Reconciler) copied(o observed) (observed, error) {
	app, err := copyOf(r.Client, o.app)
	if err != nil {
		return observed{}, err
	}
	o.app = app
	live := make(map[string]client.Object, len(o.live))
	for kind, object := range o.live {
		if live[kind], err = copyOf(r.Client, object); err != nil {
			return observed{}, err
		}
	}
	o.live = live
	scalers := make([]autoscalingv2.HorizontalPodAutoscaler, len(o.scalers))
	for i := range o.scalers {
		o.scalers[i].DeepCopyInto(&scalers[i])
	}
	o.scalers = scalers
	return o, nil
}

// copyOf is a copy of an object in the cache, with its kind, as the cache itself makes it.
func copyOf[T client.Object](c client.Client, object T) (T, error) {
	own := object.DeepCopyObject().(T)
	gvk, err := c.GroupVersionKindFor(object)
	if err == nil {
		own.GetObjectKind().SetGroupVersionKind(gvk)
	}
	return own, err
}
