package rivals

import (
	"context"
	"fmt"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// patcher writes the child with CreateOrPatch and the status with a merge patch.
type patcher struct{ client.Client }

// Reconcile makes the Deployment and patches the status, with whatever differs, be it nothing.
func (r patcher) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	app := &quellv1alpha1.App{}
	if err := r.Get(ctx, req.NamespacedName, app); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !app.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	deployment, err := createOrPatch(ctx, r.Client, app, app)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("write the Deployment: %w", err)
	}
	before := app.DeepCopy()
	report(app, deployment)
	return ctrl.Result{}, r.Status().Patch(ctx, app, client.MergeFrom(before))
}

func mergePatch() Rival {
	return Rival{
		Name:              "merge-patch",
		How:               "controllerutil.CreateOrPatch for the child, Status().Patch with client.MergeFrom at each reconcile",
		Source:            "https://github.com/kubernetes-sigs/controller-runtime/pull/850",
		SeesLostOwnership: true,
		manager: design{reconciler: func(c client.Client) reconcile.Reconciler {
			return patcher{c}
		}}.manager,
	}
}
