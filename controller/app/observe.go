package app

import (
	"context"
	"fmt"
	"time"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// observed is everything that a reconcile reads; what follows has no client.
type observed struct {
	app *quellv1alpha1.App
	// live are the objects that have the names of the App's children, by kind; what does not exist is not in it.
	live map[string]client.Object
	// scalers are the HorizontalPodAutoscalers that target the App's Deployment, the App's own one first, then by name.
	scalers []autoscalingv2.HorizontalPodAutoscaler
	// verdict is what replicas decided, nil before a Deployment is decided on.
	verdict *count
	// sure tells that App, Deployment and scalers were read past the cache.
	sure bool
	// configHash identifies the content of the config files whose change replaces the Pods; "" when there are none.
	configHash string
	// configStalled and configMoving say why configHash is that of the Pods and not that of the content.
	configStalled, configMoving *finding
	// routeError tells why the App's HTTPRoute cannot be read; the rest of the App does not wait for it.
	routeError error
	// former are objects that the App made under names that it does not ask for any more, to be deleted.
	former []client.Object
	// stuck tells why the rollout makes no progress, as far as that was looked into.
	stuck stuck
	// now is the time of the reconcile.
	now time.Time
	// version is that of the operator, "" when it is not stated.
	version string
}

// deployment is the object that has the name of the App's Deployment, nil when there is none.
func (o observed) deployment() *appsv1.Deployment {
	d, _ := o.live[kindDeployment].(*appsv1.Deployment)
	return d
}

// observe reads the App and its children from the cache; app is nil when it does not exist. A child that the cache does not
// have is asked for at the API server, for the cache only holds objects that carry our label: an object of that name may
// exist and be somebody else's, or may have been written a moment ago. What comes from the cache is its own and must not be changed;
// see copied.
func (r *Reconciler) observe(ctx context.Context, key client.ObjectKey) (observed, error) {
	app := &quellv1alpha1.App{}
	if err := r.Client.Get(ctx, key, app, client.UnsafeDisableDeepCopy); err != nil {
		return observed{}, client.IgnoreNotFound(err)
	}
	seen := observed{app: app, live: map[string]client.Object{}}
	for _, k := range kinds {
		live, err := r.find(ctx, k, app)
		if k.name == kindRoute {
			seen.routeError, err = err, nil
		}
		if err != nil {
			return observed{}, err
		}
		if live != nil {
			seen.live[k.name] = live
		}
	}
	var err error
	if seen.scalers, err = findScalers(ctx, r.Client, app, client.MatchingFields{byTarget: app.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return observed{}, err
	}
	if seen.former, err = r.formerAccounts(ctx, seen); err != nil {
		return observed{}, err
	}
	if seen, err = r.readAnew(ctx, seen); err != nil || seen.app == nil {
		return seen, err
	}
	err = r.lookAtConfig(ctx, &seen)
	return seen, err
}

// readAnew reads the App anew past the cache before an object without an owner is adopted: it may have been orphaned on purpose a
// moment ago, and an owner that is gone would have it deleted. So it does when a child is in another shard: the App may be there too,
// and app is nil then.
func (r *Reconciler) readAnew(ctx context.Context, seen observed) (observed, error) {
	if deletionPending(seen.app) || !hasOrphan(seen) && !hasElsewhere(seen) {
		return seen, nil
	}
	fresh := &quellv1alpha1.App{}
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(seen.app), fresh); err != nil {
		return observed{}, client.IgnoreNotFound(err)
	}
	seen.app = fresh
	if !r.Shard.has(fresh) {
		seen.app = nil
	}
	return seen, nil
}

func hasOrphan(seen observed) bool {
	for _, live := range seen.live {
		if isOrphan(live) || isOffered(live, seen.app) {
			return true
		}
	}
	return false
}

// find reads one child, nil when it does not exist. The API server is asked only for a child that the App wants and the cache
// does not have.
func (r *Reconciler) find(ctx context.Context, k kind, app *quellv1alpha1.App) (client.Object, error) {
	key := childKey(k, app)
	wanted := !deletionPending(app) && k.wanted(app)
	if k.name == kindRoute {
		return r.routes.find(ctx, key, wanted)
	}
	live, err := readChild(ctx, r.Client, k, key, client.UnsafeDisableDeepCopy)
	if live == nil && err == nil && wanted {
		live, err = readChild(ctx, r.Reader, k, key)
	}
	return live, err
}

func childKey(k kind, app *quellv1alpha1.App) client.ObjectKey {
	return client.ObjectKey{Namespace: app.Namespace, Name: k.childName(app)}
}

// readChild reads one child, nil when it does not exist.
func readChild(ctx context.Context, from client.Reader, k kind, key client.ObjectKey, options ...client.GetOption) (client.Object, error) {
	live := k.object()
	err := from.Get(ctx, key, live, options...)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", k.name, key, err)
	}
	return live, nil
}

func deletionPending(app *quellv1alpha1.App) bool { return !app.DeletionTimestamp.IsZero() }
