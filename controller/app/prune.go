package app

import (
	"context"
	"fmt"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// byController is the cache's index of ServiceAccounts by the UID of their controller.
const byController = "quell.dev/controller"

// controllers is the index of an object under byController.
func controllers(o client.Object) []string {
	if owner := metav1.GetControllerOf(o); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}

// remove deletes a child that the App does not want any more, if it still is what was seen; else the next look decides.
func (r *Reconciler) remove(ctx context.Context, live client.Object) error {
	uid, version := live.GetUID(), live.GetResourceVersion()
	err := r.Client.Delete(ctx, live, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// isRemovable reports whether a live object is the App's beyond doubt. An orphan merely has fields of ours.
func isRemovable(live client.Object, app *quellv1alpha1.App) bool {
	return metav1.IsControlledBy(live, app) && live.GetLabels()[LabelManagedBy] == ManagedBy
}

// formerAccounts are the ServiceAccounts that the App made under another name than it asks for now, and that no Pod uses any more.
func (r *Reconciler) formerAccounts(ctx context.Context, seen observed) ([]client.Object, error) {
	var accounts corev1.ServiceAccountList
	if err := r.Client.List(ctx, &accounts, client.InNamespace(seen.app.Namespace), client.MatchingFields{byController: string(seen.app.UID)}); err != nil {
		return nil, fmt.Errorf("list ServiceAccounts of App %q: %w", seen.app.Name, err)
	}
	var former []client.Object
	for i := range accounts.Items {
		if a := &accounts.Items[i]; isRemovable(a, seen.app) && !isInUse(a.Name, seen.app, seen.deployment()) {
			former = append(former, a)
		}
	}
	return former, nil
}

// isInUse reports whether the App asks for a ServiceAccount, or Pods may still run with it: a token dies with its account.
func isInUse(name string, app *quellv1alpha1.App, d *appsv1.Deployment) bool {
	if name == usedAccount(app) {
		return true
	}
	return d != nil && (d.Spec.Template.Spec.ServiceAccountName == name ||
		d.Status.ObservedGeneration < d.Generation || d.Status.Replicas > d.Status.UpdatedReplicas)
}

// removeFormer deletes the ServiceAccounts that the App made under other names. One that is gone is of no concern any more, so
// only those that cannot be deleted are returned.
func (r *Reconciler) removeFormer(ctx context.Context, seen observed) []applied {
	if isSuspended(seen.app) {
		return nil
	}
	var failed []applied
	for _, live := range seen.former {
		if err := r.remove(ctx, live); err != nil {
			failed = append(failed, applied{child: child{kind: kindServiceAccount, name: live.GetName(), live: live}, err: err})
		}
	}
	return failed
}
