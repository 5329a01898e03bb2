package app

import (
	"context"
	"fmt"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// observed is everything that a reconcile reads; what follows has no client.
type observed struct {
	app        *quellv1alpha1.App
	deployment *appsv1.Deployment
	service    *corev1.Service
}

// observe reads the App and its children from the cache; app is nil when it does not exist. A child that the cache does not
// have is asked for at the API server, for the cache only holds objects that carry our label: an object of that name may
// exist and be somebody else's, or may have been written a moment ago.
func (r *Reconciler) observe(ctx context.Context, key client.ObjectKey) (observed, error) {
	app := &quellv1alpha1.App{}
	if err := r.Client.Get(ctx, key, app); err != nil {
		return observed{}, client.IgnoreNotFound(err)
	}
	seen := observed{app: app}
	deployment, service := &appsv1.Deployment{}, &corev1.Service{}
	found, err := r.find(ctx, key, deployment, deletionPending(app))
	if err != nil {
		return observed{}, err
	}
	if found {
		seen.deployment = deployment
	}
	found, err = r.find(ctx, key, service, deletionPending(app) || !wantsService(app))
	if err != nil {
		return observed{}, err
	}
	if found {
		seen.service = service
	}
	return r.recheck(ctx, seen)
}

// recheck reads the App anew past the cache before an orphan is adopted: it may have been orphaned on purpose a moment ago,
// and an owner that is gone would have it deleted.
func (r *Reconciler) recheck(ctx context.Context, seen observed) (observed, error) {
	orphan := seen.deployment != nil && isOrphan(seen.deployment) || seen.service != nil && isOrphan(seen.service)
	if !orphan || deletionPending(seen.app) {
		return seen, nil
	}
	fresh := &quellv1alpha1.App{}
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(seen.app), fresh); err != nil {
		return observed{}, client.IgnoreNotFound(err)
	}
	seen.app = fresh
	return seen, nil
}

// find reads one child; the API server is asked only when the cache does not have it and cacheOnly is false.
func (r *Reconciler) find(ctx context.Context, key client.ObjectKey, into client.Object, cacheOnly bool) (bool, error) {
	err := r.Client.Get(ctx, key, into)
	if apierrors.IsNotFound(err) && !cacheOnly {
		err = r.Reader.Get(ctx, key, into)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("read %T %s: %w", into, key, err)
	}
	return err == nil, nil
}

func deletionPending(app *quellv1alpha1.App) bool { return !app.DeletionTimestamp.IsZero() }
