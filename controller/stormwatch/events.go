package stormwatch

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/storm"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// tellEach is how long an object gets no second event.
	tellEach = time.Hour
	// maxNote bounds an event's text in bytes, as the API does.
	maxNote = 1024
)

// The reasons of events.
const (
	eventStorm      = "StormDetected"
	eventStormEnded = "StormEnded"
)

// told is when objects got their latest event, whichever StormWatch it was of. Safe for concurrent use.
type told struct {
	mu sync.Mutex
	at map[storm.Key]time.Time
}

// may reports whether an object may get an event now, and takes it into account.
func (t *told) may(object storm.Key, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.at, func(_ storm.Key, at time.Time) bool { return now.Sub(at) >= tellEach })
	if _, found := t.at[object]; found {
		return false
	}
	t.at[object] = now
	return true
}

// tell records events for what a status that was written says first, and remembers it.
func (r *Reconciler) tell(ctx context.Context, w *running, seen observed, status *quellv1alpha1.StormWatchStatus) {
	was := w.memory.said
	w.memory.said = status
	if more := begun(was, status); len(more) > 0 {
		r.Events.Eventf(seen.watch, nil, corev1.EventTypeWarning, eventStorm, "Watch", "%s", noteOn(more, "write storm: "))
	}
	var ended []*quellv1alpha1.Storm
	for _, s := range begun(status, was) {
		if !w.memory.follows(objectOf(s)) {
			ended = append(ended, s)
		}
	}
	if len(ended) > 0 {
		r.Events.Eventf(seen.watch, nil, corev1.EventTypeNormal, eventStormEnded, "Watch", "%s", noteOn(ended, "ended: "))
	}
	for i := range status.Storms {
		if s := &status.Storms[i]; !says(was, s) && r.told.may(objectOf(s), seen.now) {
			note := fmt.Sprintf("write storm: %s (%s); %s; reported by StormWatch %q", stormWords(s), s.Rate, s.Remedy, seen.watch.Name)
			r.Events.Eventf(r.reference(ctx, w, s), nil, corev1.EventTypeWarning, eventStorm, "Watch", "%s", bounded(note, maxNote))
		}
	}
}

// says reports whether a status names the storm with the same verdict.
func says(status *quellv1alpha1.StormWatchStatus, s *quellv1alpha1.Storm) bool {
	for i := range status.Storms {
		if o := &status.Storms[i]; objectOf(o) == objectOf(s) && o.Verdict == s.Verdict {
			return true
		}
	}
	return false
}

func (m memory) follows(object storm.Key) bool {
	for _, o := range m.storms {
		if o.object == object {
			return true
		}
	}
	return false
}

func noteOn(storms []*quellv1alpha1.Storm, what string) string {
	note := what + stormWords(storms[0])
	if len(storms) > 1 {
		note += fmt.Sprintf(", and %d more", len(storms)-1)
	}
	return bounded(note, maxNote)
}

// reference names the object of a storm as events do.
func (r *Reconciler) reference(ctx context.Context, w *running, s *quellv1alpha1.Storm) *corev1.ObjectReference {
	ref := &corev1.ObjectReference{Namespace: s.Namespace, Name: s.Name, Kind: s.Resource, APIVersion: s.Group}
	resource, found := w.found.resource(objectOf(s).GroupResource)
	if !found {
		return ref // it is watched no more
	}
	ref.APIVersion, ref.Kind = resource.GroupVersion().String(), resource.Kind
	// Without its uid, kubectl describe does not show the event. The operator may list what it may watch, and need not get it.
	list, err := r.Clients.Metadata.Resource(resource.GroupVersionResource).Namespace(s.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", s.Name).String(), Limit: 1,
	})
	if err != nil {
		logf.FromContext(ctx).V(1).Info("event without uid", "object", objectOf(s).String(), "error", err.Error())
	} else if len(list.Items) == 1 {
		ref.UID = list.Items[0].UID
	}
	return ref
}
