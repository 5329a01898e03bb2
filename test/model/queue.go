package model

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// queue is a controller's work queue, as controller-runtime's priority queue is one: an item is in it once, ready or for later, and
// to add it again lets the earlier time count.
type queue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request] // nil: whatever is not modelled panics

	now func() time.Time
	mu  sync.Mutex
	// due is when an item is to be worked on; zero means that it is ready.
	due map[reconcile.Request]time.Time
	// failures are the failed attempts in a row.
	failures map[reconcile.Request]int
}

func newQueue(now func() time.Time) *queue {
	return &queue{now: now, due: map[reconcile.Request]time.Time{}, failures: map[reconcile.Request]int{}}
}

func (q *queue) Add(r reconcile.Request) { q.add(r, time.Time{}) }

func (q *queue) AddAfter(r reconcile.Request, d time.Duration) {
	if d <= 0 {
		q.Add(r)
		return
	}
	q.add(r, q.now().Add(d))
}

func (q *queue) add(r reconcile.Request, at time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if due, found := q.due[r]; !found || at.Before(due) {
		q.due[r] = at
	}
}

func (q *queue) ShutDown() {}

// ready are the items to be worked on now, sorted.
func (q *queue) ready() []reconcile.Request {
	return slices.DeleteFunc(q.all(), func(r reconcile.Request) bool { return q.due[r].After(q.now()) })
}

func (q *queue) all() []reconcile.Request {
	return slices.SortedFunc(maps.Keys(q.due), func(a, b reconcile.Request) int {
		return compareKeys(Key{NamespacedName: a.NamespacedName}, Key{NamespacedName: b.NamespacedName})
	})
}

// next is when the next item becomes ready, unless one is already.
func (q *queue) next() (time.Time, bool) {
	var next time.Time
	for _, at := range q.due {
		if !at.After(q.now()) {
			return next, false
		}
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next, !next.IsZero()
}

// done notes how a reconcile ended, and queues what is to be done later.
func (q *queue) done(r reconcile.Request, result reconcile.Result, err error) {
	switch {
	case err != nil:
		q.failures[r]++
		q.AddAfter(r, min(5*time.Millisecond<<min(q.failures[r]-1, 20), 1000*time.Second))
	case result.RequeueAfter > 0:
		delete(q.failures, r)
		q.AddAfter(r, result.RequeueAfter)
	default:
		delete(q.failures, r)
	}
}
