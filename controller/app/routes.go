package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/eventfilter"
	"github.com/hduolab/quell/controller/ssa"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// errGatewayMissing tells that the cluster does not have the Gateway API, in words for the App's status.
var errGatewayMissing error = &ssa.InvalidContentError{Reason: "the cluster does not serve HTTPRoute of gateway.networking.k8s.io/v1: " +
	"install the Gateway API (https://gateway-api.sigs.k8s.io) and a Gateway controller, or remove spec.httpRoute"}

// routes follow the cluster's HTTPRoutes, a kind that it may lack. Safe for concurrent use.
type routes struct {
	*kindWatch
	client client.Client
	reader client.Reader
}

func newRoutes(o Options) *routes {
	r := &routes{client: o.Client, reader: o.Reader}
	r.kindWatch = &kindWatch{
		kind: kindRoute, empty: empty[gatewayv1.HTTPRoute], may: r.served, ends: endOfRoutes, users: r.users,
		options: cache.Options{
			DefaultLabelSelector: o.Shard.children(), DefaultTransform: trimManagedFields,
		},
		handler: handler.EnqueueRequestForOwner(o.Client.Scheme(), o.Client.RESTMapper(), &quellv1alpha1.App{}, handler.OnlyControllerOwner()),
		changes: eventfilter.Projected(kindNamed(kindRoute).facts), now: o.Clock.Now,
	}
	return r
}

// find reads an HTTPRoute, nil when it does not exist. The API server is asked only for one that is wanted and the cache does not
// have. For an App without a route it is found out too whether there are any, since an earlier process may have left one behind,
// but once it is known that the cluster does not serve them that is not asked again.
func (r *routes) find(ctx context.Context, key client.ObjectKey, wanted bool) (client.Object, error) {
	if !wanted && errors.Is(r.why(), errGatewayMissing) {
		return nil, errGatewayMissing
	}
	running, err := r.watch(ctx, key)
	if err != nil {
		return nil, err
	}
	route := &gatewayv1.HTTPRoute{}
	err = running.read(ctx, key, route, client.UnsafeDisableDeepCopy)
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

// endOfRoutes ends the watch of what is not served any more, or must not be read.
func endOfRoutes(err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return errGatewayMissing
	case apierrors.IsForbidden(err):
		return err
	}
	return nil
}

// users are the Apps that ask for an HTTPRoute.
func (r *routes) users(ctx context.Context) []reconcile.Request {
	var apps quellv1alpha1.AppList
	if err := r.client.List(ctx, &apps); err != nil {
		logf.FromContext(ctx).Error(err, "Apps are not told that HTTPRoutes are not served any more")
	}
	return requests(slices.DeleteFunc(apps.Items, func(app quellv1alpha1.App) bool { return !wantsRoute(&app) }))
}

// leftRoute is an error when the App asked for an HTTPRoute once that it has to lose now and that cannot be read. Its row in
// the status tells; it stays until the route was looked for.
func leftRoute(seen observed, kind string) error {
	had := slices.ContainsFunc(seen.app.Status.Children, func(row quellv1alpha1.AppChild) bool { return row.Kind == kindRoute })
	if kind != kindRoute || !had || errors.Is(seen.routeError, errGatewayMissing) {
		return nil
	}
	return seen.routeError
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
