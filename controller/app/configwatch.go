package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"
	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"golang.org/x/sync/singleflight"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// rememberContents is how many ConfigMaps and Secrets are remembered by the hash of their content, at some 200 bytes each.
	// One beyond that is read at each look.
	rememberContents = 1 << 16
	// indexConfig indexes Apps by the kinds and the objects whose content rolls their Pods.
	indexConfig = "rollingConfig"
)

// configs follows the ConfigMaps and Secrets whose content rolls Pods. Of the objects that are watched nothing is kept but name, uid
// and version: not even annotations, for kubectl apply writes the content of a Secret into one. An object itself is read past
// the cache, once for each version, and of it nothing is kept but the hash. Safe for concurrent use.
type configs struct {
	client   client.Client
	reader   client.Reader
	contents *lru.Cache[types.UID, contents]
	reads    singleflight.Group
	watches  map[string]*kindWatch
}

// contents is the hash of an object's content at a version.
type contents struct {
	version string
	sum     []byte
}

func newConfigs(o Options) (*configs, error) {
	remembered, err := lru.New[types.UID, contents](rememberContents)
	c := &configs{client: o.Client, reader: o.Reader, contents: remembered}
	c.watches = map[string]*kindWatch{
		kindConfigMap: c.follow(kindConfigMap, "configmaps", o),
		kindSecret:    c.follow(kindSecret, "secrets", o),
	}
	return c, err
}

// follow is the watch of one kind, which lasts as long as the operator has the right to it.
func (c *configs) follow(kind, resource string, o Options) *kindWatch {
	return &kindWatch{
		kind:    kind,
		empty:   func() client.Object { return configMetadata(kind) },
		options: cache.Options{DefaultTransform: identity},
		may:     func(ctx context.Context, _ client.ObjectKey) error { return c.mayWatch(ctx, resource) },
		ends: func(err error) error {
			if apierrors.IsForbidden(err) {
				return errConfigDenied
			}
			return nil
		},
		users: func(ctx context.Context) []reconcile.Request { return c.users(ctx, kind) },
		handler: handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
			return c.users(ctx, kind+"/"+o.GetName(), client.InNamespace(o.GetNamespace()))
		}),
		changes: predicate.ResourceVersionChangedPredicate{},
		now:     o.Clock.Now,
	}
}

func configMetadata(kind string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return m
}

// identity drops everything but what tells one version of an object from another.
func identity(object any) (any, error) {
	if m, ok := object.(*metav1.PartialObjectMetadata); ok {
		m.ObjectMeta = metav1.ObjectMeta{Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion}
	}
	return object, nil
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
	running, err := w.watch(ctx, key)
	if err != nil {
		return nil, err
	}
	seen := configMetadata(kind)
	if err := running.read(ctx, key, seen); err != nil {
		return nil, err
	}
	if known, ok := c.contents.Get(seen.UID); ok && !isOlder(known.version, seen.ResourceVersion) {
		return known.sum, nil
	}
	sum, err, _ := c.reads.Do(string(seen.UID)+"/"+seen.ResourceVersion, func() (any, error) { return c.read(ctx, kind, key) })
	if apierrors.IsForbidden(err) {
		w.end(running, errConfigDenied)
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
func (c *configs) read(ctx context.Context, kind string, key client.ObjectKey) ([]byte, error) {
	var o client.Object = &corev1.ConfigMap{}
	if kind == kindSecret {
		o = &corev1.Secret{}
	}
	if err := c.reader.Get(ctx, key, o); err != nil {
		return nil, err
	}
	sum, err := contentSum(o)
	if err == nil {
		c.contents.Add(o.GetUID(), contents{o.GetResourceVersion(), sum})
	}
	return sum, err
}

// mayWatch returns errConfigDenied when the operator may not do all that is needed.
func (c *configs) mayWatch(ctx context.Context, resource string) error {
	for _, verb := range []string{"get", "list", "watch"} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Resource: resource},
		}}
		err := c.client.Create(ctx, review)
		if apierrors.IsForbidden(err) || err == nil && !review.Status.Allowed {
			return errConfigDenied
		}
		if err != nil {
			return fmt.Errorf("ask whether the operator may %s %s: %w", verb, resource, err)
		}
	}
	return nil
}

// users are the Apps with a value of indexConfig.
func (c *configs) users(ctx context.Context, indexed string, opts ...client.ListOption) []reconcile.Request {
	var apps quellv1alpha1.AppList
	if err := c.client.List(ctx, &apps, append(opts, client.MatchingFields{indexConfig: indexed})...); err != nil {
		logf.FromContext(ctx).Error(err, "Apps are not told of a change", "of", strings.ReplaceAll(indexed, "/", " "))
		return nil
	}
	return requests(apps.Items)
}
