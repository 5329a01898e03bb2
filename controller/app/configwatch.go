package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"golang.org/x/sync/singleflight"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
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
	// rememberContents is how many ConfigMaps and Secrets are remembered by the hash of their content, at some 200 bytes each.
	// One beyond that is read at each look.
	rememberContents = 1 << 16
	// askAgain is how long it is taken for granted that the operator may not watch a kind.
	askAgain = 2 * time.Second
	// configSync bounds the wait for the first list of a kind.
	configSync = 30 * time.Second
	// indexConfig indexes Apps by the kinds and the objects whose content rolls their Pods.
	indexConfig = "rollingConfig"
)

// configs follows the ConfigMaps and Secrets whose content rolls Pods. A kind is watched from the first time on that an App asks
// for it and the operator may, and of its objects nothing is kept but name, uid and version: not even annotations, for kubectl
// apply writes the content of a Secret into one. An object itself is read past the cache, once for each version, and of it
// nothing is kept but the hash. Safe for concurrent use.
type configs struct {
	client client.Client
	reader client.Reader
	// newCache makes a cache for the metadata of one kind, index an index of the Apps.
	newCache func(toolscache.WatchErrorHandlerWithContext) (cache.Cache, error)
	index    client.FieldIndexer
	contents *lru.Cache[types.UID, contents]
	reads    singleflight.Group
	watches  map[string]*configWatch
	now      func() time.Time

	// ctx and queue are the controller's, as of its start.
	ctx   context.Context
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// contents is the hash of an object's content at a version.
type contents struct {
	version string
	sum     []byte
}

// configWatch is the watch of one kind.
type configWatch struct {
	kind, resource string
	empty          func() client.Object
	mu             sync.Mutex
	// running is nil while the kind is not watched.
	running *runningWatch
	// denied is when the operator was last found not to have the right.
	denied time.Time
}

type runningWatch struct {
	cache.Cache
	ctx  context.Context
	stop context.CancelFunc
}

func newConfigs(o Options) (*configs, error) {
	remembered, err := lru.New[types.UID, contents](rememberContents)
	return &configs{
		client: o.Client, reader: o.Reader, contents: remembered, now: o.Clock.Now,
		watches: map[string]*configWatch{
			kindConfigMap: {kind: kindConfigMap, resource: "configmaps", empty: func() client.Object { return &corev1.ConfigMap{} }},
			kindSecret:    {kind: kindSecret, resource: "secrets", empty: func() client.Object { return &corev1.Secret{} }},
		},
	}, err
}

// bind lets the configs work with a manager. The caches are their own, so that one can end when the permission does.
func (c *configs) bind(mgr ctrl.Manager) {
	c.index = mgr.GetFieldIndexer()
	c.newCache = func(failed toolscache.WatchErrorHandlerWithContext) (cache.Cache, error) {
		return cache.New(mgr.GetConfig(), cache.Options{
			HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
			DefaultTransform: identity, DefaultWatchErrorHandler: failed,
		})
	}
}

// identity drops everything but what tells one version of an object from another.
func identity(object any) (any, error) {
	if m, ok := object.(*metav1.PartialObjectMetadata); ok {
		m.ObjectMeta = metav1.ObjectMeta{Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion}
	}
	return object, nil
}

// Start is called by the controller when it starts; nothing is watched yet.
func (c *configs) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	c.ctx, c.queue = ctx, queue
	return c.index.IndexField(ctx, &quellv1alpha1.App{}, indexConfig, configKeys)
}

// configKeys are an App's values of indexConfig.
func configKeys(o client.Object) []string {
	app, ok := o.(*quellv1alpha1.App)
	if !ok {
		return nil
	}
	var keys []string
	for _, ref := range rolling(app) {
		keys = append(keys, ref.kind, ref.kind+"/"+ref.name)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// sum is the hash of an object's content. The error is errConfigDenied, or says that the object is not found, or is temporary.
func (c *configs) sum(ctx context.Context, kind string, key client.ObjectKey) ([]byte, error) {
	w := c.watches[kind]
	running, err := c.watch(ctx, w)
	if err != nil {
		return nil, err
	}
	seen, err := running.find(ctx, w, key)
	if err != nil {
		return nil, err
	}
	if known, ok := c.contents.Get(seen.UID); ok && !isOlder(known.version, seen.ResourceVersion) {
		return known.sum, nil
	}
	sum, err, _ := c.reads.Do(string(seen.UID)+"/"+seen.ResourceVersion, func() (any, error) { return c.read(ctx, w, key) })
	if apierrors.IsForbidden(err) {
		c.deny(w, running)
		return nil, errConfigDenied
	}
	if err != nil {
		return nil, err
	}
	return sum.([]byte), nil
}

func isOlder(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err != nil || order < 0
}

// read hashes the content of an object as the API server has it now.
func (c *configs) read(ctx context.Context, w *configWatch, key client.ObjectKey) ([]byte, error) {
	o := w.empty()
	if err := c.reader.Get(ctx, key, o); err != nil {
		return nil, err
	}
	sum, err := contentSum(o)
	if err == nil {
		c.contents.Add(o.GetUID(), contents{o.GetResourceVersion(), sum})
	}
	return sum, err
}

// find reads an object's identity from the cache, waiting for its first list.
func (r *runningWatch) find(ctx context.Context, w *configWatch, key client.ObjectKey) (*metav1.PartialObjectMetadata, error) {
	ctx, cancel := context.WithTimeout(ctx, configSync)
	defer cancel()
	defer context.AfterFunc(r.ctx, cancel)()
	found := w.metadata()
	if !r.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("no list of %s yet", w.resource)
	}
	return found, r.Get(ctx, key, found)
}

func (w *configWatch) metadata() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(w.kind))
	return m
}

// watch returns the watch of a kind, which it starts when there is none and the operator may. An informer without the right
// would go on trying, and its readers waiting, for ever.
func (c *configs) watch(ctx context.Context, w *configWatch) (*runningWatch, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running != nil {
		return w.running, nil
	}
	if c.now().Sub(w.denied) < askAgain {
		return nil, errConfigDenied
	}
	if err := c.mayWatch(ctx, w); err != nil {
		if errors.Is(err, errConfigDenied) {
			w.denied = c.now()
		}
		return nil, err
	}
	running, err := c.start(w)
	w.running = running
	return running, err
}

// mayWatch returns errConfigDenied when the operator may not do all that is needed.
func (c *configs) mayWatch(ctx context.Context, w *configWatch) error {
	for _, verb := range []string{"get", "list", "watch"} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Resource: w.resource},
		}}
		err := c.client.Create(ctx, review)
		if apierrors.IsForbidden(err) || err == nil && !review.Status.Allowed {
			return errConfigDenied
		}
		if err != nil {
			return fmt.Errorf("ask whether the operator may %s %s: %w", verb, w.resource, err)
		}
	}
	return nil
}

// start watches a kind, and wakes the Apps whose Pods an object rolls.
func (c *configs) start(w *configWatch) (*runningWatch, error) {
	ctx, stop := context.WithCancel(c.ctx)
	running := &runningWatch{ctx: ctx, stop: stop}
	own, err := c.newCache(func(ctx context.Context, reflector *toolscache.Reflector, err error) {
		c.failed(ctx, w, running, reflector, err)
	})
	if err != nil {
		stop()
		return nil, err
	}
	running.Cache = own
	go func() {
		if err := own.Start(ctx); err != nil {
			logf.FromContext(ctx).Error(err, "watch ended", "kind", w.kind)
			c.deny(w, running)
		}
	}()
	var object client.Object = w.metadata()
	users := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		return c.users(ctx, w.kind+"/"+o.GetName(), client.InNamespace(o.GetNamespace()))
	})
	return running, source.Kind(own, object, users, predicate.ResourceVersionChangedPredicate{}).Start(ctx, c.queue)
}

// failed ends a watch that the operator has no right to any more, and lets the Apps say so; all else is retried.
func (c *configs) failed(ctx context.Context, w *configWatch, running *runningWatch, reflector *toolscache.Reflector, err error) {
	if !apierrors.IsForbidden(err) {
		toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
		return
	}
	c.deny(w, running)
	for _, request := range c.users(c.ctx, w.kind) {
		c.queue.Add(request)
	}
}

// deny ends a watch for lack of rights.
func (c *configs) deny(w *configWatch, running *runningWatch) {
	running.stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running == running {
		w.running, w.denied = nil, c.now()
	}
}

// users are the Apps with a value of indexConfig.
func (c *configs) users(ctx context.Context, indexed string, opts ...client.ListOption) []reconcile.Request {
	var apps quellv1alpha1.AppList
	if err := c.client.List(ctx, &apps, append(opts, client.MatchingFields{indexConfig: indexed})...); err != nil {
		logf.FromContext(ctx).Error(err, "Apps are not told of a change", "of", strings.ReplaceAll(indexed, "/", " "))
		return nil
	}
	requests := make([]reconcile.Request, len(apps.Items))
	for i := range apps.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&apps.Items[i])
	}
	return requests
}
