package app

import (
	"context"
	"fmt"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
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

func wantsAccount(app *quellv1alpha1.App) bool {
	asked := app.Spec.ServiceAccount
	return asked != nil && asked.Create != nil && *asked.Create
}

// accountName is the name of the ServiceAccount that the App makes, "" when it makes none: one that it only uses is no child.
func accountName(app *quellv1alpha1.App) string {
	if !wantsAccount(app) {
		return ""
	}
	return usedAccount(app)
}

// usedAccount is the name of the ServiceAccount of the App's Pods, "" for the namespace's default.
func usedAccount(app *quellv1alpha1.App) string {
	switch asked := app.Spec.ServiceAccount; {
	case asked == nil:
		return ""
	case asked.Name == "":
		return app.Name
	default:
		return asked.Name
	}
}

// desiredAccount is the full apply configuration of an App's ServiceAccount. Whether its token is mounted is said by the Pods.
func desiredAccount(seen observed) (runtime.ApplyConfiguration, error) {
	app := seen.app
	account := corev1ac.ServiceAccount(accountName(app), app.Namespace)
	account.ObjectMetaApplyConfiguration = childMetadata(app, accountName(app), app.Spec.ServiceAccount.Annotations)
	return account, nil
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
