package app

import (
	"context"
	"maps"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/ssa"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// isTentative reports whether a child must not be written on the word of the cache alone: it is to be deleted, or its content may
// take Pods away. An autoscaler takes them away by its bounds, and by existing.
func isTentative(k kind, seen observed) bool {
	return !seen.sure && (!k.wanted(seen.app) || k.name == kindAutoscaler || k.name == kindDeployment && seen.count().unsure)
}

// applyAgain decides about one child anew, from what it depends on as read past the cache. What became of it before stays when
// nothing is to be applied any more.
func (r *Reconciler) applyAgain(ctx context.Context, seen observed, k kind, before applied) applied {
	seen, err := r.lookAgain(ctx, seen, k)
	if err != nil {
		before.err = err
		return before
	}
	if seen.app == nil || deletionPending(seen.app) {
		return before
	}
	return r.applyChild(ctx, seen.app, desiredChild(seen, k))
}

// lookAgain reads the App, one child and, for a Deployment, its autoscalers past the cache; app is nil when there is another App of
// its name, or none, or it is in another shard.
func (r *Reconciler) lookAgain(ctx context.Context, seen observed, k kind) (observed, error) {
	app := &quellv1alpha1.App{}
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(seen.app), app); err != nil {
		return observed{}, client.IgnoreNotFound(err)
	}
	if app.UID != seen.app.UID || !r.Shard.has(app) {
		return observed{}, nil
	}
	changed := app.Generation != seen.app.Generation
	seen.app, seen.sure, seen.live = app, true, maps.Clone(seen.live)
	live, err := readChild(ctx, r.Reader, k, childKey(k, app))
	if err != nil {
		return seen, err
	}
	delete(seen.live, k.name)
	if live != nil {
		seen.live[k.name] = live
	}
	if k.name != kindDeployment {
		return seen, nil
	}
	if seen.scalers, err = findScalers(ctx, r.Reader, app); err == nil && changed {
		err = r.lookAtConfig(ctx, &seen)
	}
	return seen, err
}

// isOutdated reports whether a child was not applied because what was seen of it is not how it is.
func (a applied) isOutdated() bool { return a.Outcome == ssa.Stale && a.RetryAfter == 0 }
