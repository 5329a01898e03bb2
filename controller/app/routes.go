package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/eventfilter"
	"github.com/hduolab/quell/controller/ssa"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
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
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

const (
	// askForRoutes is how long it is taken for granted that the cluster does not serve HTTPRoutes, whichever App asks.
	askForRoutes = 2 * time.Second
	// routeSync bounds the wait for the first list of HTTPRoutes.
	routeSync = 30 * time.Second
)

// errGatewayMissing tells that the cluster does not have the Gateway API, in words for the App's status.
var errGatewayMissing error = &ssa.InvalidContentError{Reason: "the cluster does not serve HTTPRoute of gateway.networking.k8s.io/v1: " +
	"install the Gateway API (https://gateway-api.sigs.k8s.io) and a Gateway controller, or remove spec.httpRoute"}

// routes follow the cluster's HTTPRoutes, a kind that it may lack. They are watched from the first look at which the cluster
// serves them, and until it does not serve them any more; an App that asks for one looks again every now and then. The cache is
// their own, so that it can end. Safe for concurrent use.
type routes struct {
	client client.Client
	reader client.Reader
	now    func() time.Time
	// newCache makes a cache that reports the errors of its watch.
	newCache func(toolscache.WatchErrorHandlerWithContext) (cache.Cache, error)
	owners   handler.EventHandler
	changes  predicate.Predicate

	// ctx and queue are the controller's, as of its start.
	ctx   context.Context
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]

	mu sync.Mutex
	// running is nil while HTTPRoutes are not watched, for the reason in denied, as found at the time in asked.
	running *runningWatch
	denied  error
	asked   time.Time
}

func newRoutes(o Options) *routes {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == kindRoute })
	return &routes{client: o.Client, reader: o.Reader, now: o.Clock.Now, changes: eventfilter.Projected(kinds[i].facts)}
}

// bind lets the routes work with a manager.
func (r *routes) bind(mgr ctrl.Manager) {
	r.owners = handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &quellv1alpha1.App{}, handler.OnlyControllerOwner())
	r.newCache = func(failed toolscache.WatchErrorHandlerWithContext) (cache.Cache, error) {
		return cache.New(mgr.GetConfig(), cache.Options{
			HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
			DefaultLabelSelector: labels.SelectorFromSet(labels.Set{LabelManagedBy: ManagedBy}),
			DefaultTransform:     trimManagedFields, DefaultWatchErrorHandler: failed,
		})
	}
}

// Start is called by the controller when it starts; nothing is watched yet.
func (r *routes) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	r.ctx, r.queue = ctx, queue
	return nil
}

// find reads an HTTPRoute, nil when it does not exist. The API server is asked only for one that is wanted and the cache does not
// have. The error is errGatewayMissing, or of the API server; it is of no concern to an App that does not want a route.
func (r *routes) find(ctx context.Context, key client.ObjectKey, wanted bool) (client.Object, error) {
	running, err := r.watch(ctx, key, wanted)
	if err != nil {
		return nil, err
	}
	route := &gatewayv1.HTTPRoute{}
	err = r.read(ctx, running, key, route)
	if apierrors.IsNotFound(err) && wanted {
		err = r.reader.Get(ctx, key, route)
	}
	switch {
	case isUnserved(err):
		r.end(running, errGatewayMissing)
		return nil, errGatewayMissing
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s %s: %w", kindRoute, key, err)
	}
	return route, nil
}

// read reads from the cache, after its first list.
func (r *routes) read(ctx context.Context, running *runningWatch, key client.ObjectKey, into client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, routeSync)
	defer cancel()
	defer context.AfterFunc(running.ctx, cancel)()
	if !running.WaitForCacheSync(ctx) {
		return errors.New("the cache of HTTPRoutes was not filled in time")
	}
	return running.Get(ctx, key, into)
}

// watch returns the watch of HTTPRoutes, which it starts when there is none and the cluster serves them. It asks once for an App
// without a route too: an earlier process may have left one behind.
func (r *routes) watch(ctx context.Context, key client.ObjectKey, wanted bool) (*runningWatch, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running != nil {
		return r.running, nil
	}
	if r.denied != nil && (!wanted || r.now().Sub(r.asked) < askForRoutes) {
		return nil, r.denied
	}
	if r.denied, r.asked = r.served(ctx, key), r.now(); r.denied != nil {
		return nil, r.denied
	}
	var err error
	r.running, err = r.start()
	return r.running, err
}

// served returns an error when HTTPRoutes cannot be read.
func (r *routes) served(ctx context.Context, key client.ObjectKey) error {
	err := r.reader.Get(ctx, key, &gatewayv1.HTTPRoute{})
	switch {
	case isUnserved(err):
		return errGatewayMissing
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("read %s %s: %w", kindRoute, key, err)
	}
	return nil
}

// start watches HTTPRoutes, and wakes the Apps that they belong to.
func (r *routes) start() (*runningWatch, error) {
	ctx, stop := context.WithCancel(r.ctx)
	running := &runningWatch{ctx: ctx, stop: stop}
	own, err := r.newCache(func(ctx context.Context, reflector *toolscache.Reflector, err error) {
		r.failed(ctx, running, reflector, err)
	})
	if err != nil {
		stop()
		return nil, fmt.Errorf("make a cache of HTTPRoutes: %w", err)
	}
	running.Cache = own
	go func() {
		if err := own.Start(ctx); err != nil {
			logf.FromContext(ctx).Error(err, "watch ended", "kind", kindRoute)
			r.end(running, err)
		}
	}()
	var object client.Object = &gatewayv1.HTTPRoute{}
	return running, source.Kind(own, object, r.owners, r.changes).Start(ctx, r.queue)
}

// failed ends a watch of what is not served any more, or must not be read, and lets the Apps say so; all else is retried.
func (r *routes) failed(ctx context.Context, running *runningWatch, reflector *toolscache.Reflector, err error) {
	switch {
	case apierrors.IsNotFound(err):
		r.end(running, errGatewayMissing)
	case apierrors.IsForbidden(err):
		r.end(running, err)
	default:
		toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
		return
	}
	var apps quellv1alpha1.AppList
	if err := r.client.List(r.ctx, &apps); err != nil {
		logf.FromContext(ctx).Error(err, "Apps are not told that HTTPRoutes are not served any more")
	}
	for i := range apps.Items {
		if wantsRoute(&apps.Items[i]) {
			r.queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&apps.Items[i])})
		}
	}
}

// end ends a watch.
func (r *routes) end(running *runningWatch, why error) {
	running.stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running == running {
		r.running, r.denied, r.asked = nil, why, r.now()
	}
}

// isUnserved reports whether an error tells that the API server does not know a kind.
func isUnserved(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// unserved words what the API server answers to an apply of a kind that it is giving up, or gave up a moment ago.
func unserved(kind string, err error) error {
	if kind == kindRoute && (isUnserved(err) || apierrors.IsMethodNotSupported(err)) {
		return errGatewayMissing
	}
	return err
}

// childTypes give the children's kinds their merge rules. Those of the Gateway API are not built into client-go.
type childTypes struct{ builtIn, gateway managedfields.TypeConverter }

// ObjectToTyped gives an object the merge rules of its kind.
func (t childTypes) ObjectToTyped(o runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	if o.GetObjectKind().GroupVersionKind().Group == gatewayv1.GroupName {
		return t.gateway.ObjectToTyped(o, opts...)
	}
	return t.builtIn.ObjectToTyped(o, opts...)
}

// TypedToObject is the same for all kinds.
func (t childTypes) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	return t.builtIn.TypedToObject(value)
}
