package app

import (
	"context"
	"fmt"
	"sync"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	// askAgain is how long the answer that a kind cannot be watched is taken for granted, whichever App asks.
	askAgain = 2 * time.Second
	// firstList bounds the wait for the first list of a kind.
	firstList = 30 * time.Second
)

// kindWatch watches a kind that the cluster may lack or that the operator may have no right to: from the first time on that an
// App needs it and it can be watched, until it cannot be any more. The next App that needs it then asks again.
//
// The manager's cache cannot do this. Its informer of a kind that cannot be listed tries for ever, and whoever reads waits as
// long; one handler gets the watch errors of all kinds; and an informer that is removed takes along what the controller registered
// with it, which it does at its start alone. So each kind has a cache of its own for as long as it is watched. Safe for concurrent use.
type kindWatch struct {
	kind string
	// empty returns an object to read into, of the type that is watched.
	empty func() client.Object
	// options are those of the cache that do not come from the manager.
	options cache.Options
	// may returns an error when the kind cannot be watched. key is of the object that is asked for.
	may func(ctx context.Context, key client.ObjectKey) error
	// ends says why an error of the watch ends it, nil when it goes on and tries again.
	ends func(error) error
	// users are the Apps that are told of the end.
	users func(context.Context) []reconcile.Request
	// handler wakes Apps for those changes of an object that changes lets pass.
	handler handler.EventHandler
	changes predicate.Predicate
	now     func() time.Time

	// newCache makes a cache that reports the errors of its watch.
	newCache func(toolscache.WatchErrorHandlerWithContext) (cache.Cache, error)
	// ctx and queue are the controller's, as of its start.
	ctx   context.Context
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]

	mu sync.Mutex
	// running is nil while the kind is not watched, for the reason in denied, as found at the time in asked.
	running *runningWatch
	denied  error
	asked   time.Time
}

// runningWatch is a cache of one kind until ctx is done, whose cause says why it ended.
type runningWatch struct {
	cache.Cache
	ctx  context.Context
	stop context.CancelCauseFunc
}

// bind lets the watch work with a manager.
func (w *kindWatch) bind(mgr ctrl.Manager) {
	w.newCache = func(failed toolscache.WatchErrorHandlerWithContext) (cache.Cache, error) {
		o := w.options
		o.HTTPClient, o.Scheme, o.Mapper = mgr.GetHTTPClient(), mgr.GetScheme(), mgr.GetRESTMapper()
		o.DefaultWatchErrorHandler = failed
		return cache.New(mgr.GetConfig(), o)
	}
}

// Start is called by the controller when it starts; nothing is watched yet.
func (w *kindWatch) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	w.ctx, w.queue = ctx, queue
	return nil
}

// watch returns the watch, which it starts when there is none and the kind can be watched.
func (w *kindWatch) watch(ctx context.Context, key client.ObjectKey) (*runningWatch, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running != nil {
		return w.running, nil
	}
	if w.ctx == nil {
		return nil, fmt.Errorf("watch %s: the controller has not been started", w.kind)
	}
	if w.denied != nil && w.now().Sub(w.asked) < askAgain {
		return nil, w.denied
	}
	if w.denied, w.asked = w.may(ctx, key), w.now(); w.denied != nil {
		return nil, w.denied
	}
	var err error
	w.running, err = w.start()
	return w.running, err
}

// why is the reason for which the kind was not watched when that was last asked for, nil while it is watched.
func (w *kindWatch) why() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.denied
}

func (w *kindWatch) start() (*runningWatch, error) {
	ctx, stop := context.WithCancelCause(w.ctx)
	running := &runningWatch{ctx: ctx, stop: stop}
	own, err := w.newCache(func(ctx context.Context, reflector *toolscache.Reflector, err error) {
		w.failed(ctx, running, reflector, err)
	})
	if err != nil {
		stop(err)
		return nil, fmt.Errorf("make a cache of %s: %w", w.kind, err)
	}
	running.Cache = own
	if err := source.Kind(own, w.empty(), w.handler, w.changes).Start(ctx, w.queue); err != nil {
		stop(err)
		return nil, fmt.Errorf("watch %s: %w", w.kind, err)
	}
	go func() {
		if err := own.Start(ctx); err != nil {
			logf.FromContext(ctx).Error(err, "watch ended", "kind", w.kind)
			w.end(running, err)
		}
	}()
	return running, nil
}

// failed ends a watch that cannot go on, and lets the Apps say so; all else is retried.
func (w *kindWatch) failed(ctx context.Context, running *runningWatch, reflector *toolscache.Reflector, err error) {
	why := w.ends(err)
	if why == nil {
		toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
		return
	}
	w.end(running, why)
	for _, request := range w.users(w.ctx) {
		w.queue.Add(request)
	}
}

func (w *kindWatch) end(running *runningWatch, why error) {
	running.stop(why)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running == running {
		w.running, w.denied, w.asked = nil, why, w.now()
	}
}

// read reads from the cache, after its first list. When the watch has ended, the error says why.
func (r *runningWatch) read(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	ctx, cancel := context.WithTimeout(ctx, firstList)
	defer cancel()
	defer context.AfterFunc(r.ctx, cancel)()
	var err error
	if !r.WaitForCacheSync(ctx) {
		err = fmt.Errorf("no first list within %s", firstList)
	} else {
		err = r.Get(ctx, key, into, options...)
	}
	if err != nil && r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	return err
}
