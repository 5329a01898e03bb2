package rivals

import (
	"context"
	"errors"
	"fmt"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/patch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// clusterReconciler reports as Cluster API's own controllers do.
type clusterReconciler struct{ client.Client }

// Reconcile makes the Deployment and patches what changed of the status.
func (r clusterReconciler) Reconcile(ctx context.Context, req ctrl.Request) (result ctrl.Result, err error) {
	app := &conditionedApp{}
	if err := r.Get(ctx, req.NamespacedName, app); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !app.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	helper, err := patch.NewHelper(app, r.Client)
	if err != nil {
		return ctrl.Result{}, err
	}
	defer func() {
		options := []patch.Option{patch.WithOwnedConditions{Conditions: []string{
			quellv1alpha1.ConditionReady, quellv1alpha1.ConditionAvailable, quellv1alpha1.ConditionProgressing,
		}}}
		if err == nil {
			options = append(options, patch.WithStatusObservedGeneration{})
		}
		if failed := helper.Patch(ctx, app, options...); failed != nil {
			err = errors.Join(err, failed)
		}
	}()
	return ctrl.Result{}, r.reconcile(ctx, app)
}

func (r clusterReconciler) reconcile(ctx context.Context, app *conditionedApp) error {
	deployment, err := createOrPatch(ctx, r.Client, &app.App, app)
	if err != nil {
		return fmt.Errorf("write the Deployment: %w", err)
	}
	for _, c := range describe(&app.App, deployment).conditions(app.Generation) {
		conditions.Set(app, c)
	}
	return nil
}

func clusterAPI() Rival {
	return Rival{
		Name:              "cluster-api",
		How:               "cluster-api/util/patch: a Helper's Patch at the end of each reconcile, conditions by its conditions package",
		Source:            "https://pkg.go.dev/sigs.k8s.io/cluster-api/util/patch",
		SeesLostOwnership: true,
		manager: design{
			add: addConditioned, object: &conditionedApp{},
			reconciler: func(c client.Client) reconcile.Reconciler { return clusterReconciler{c} },
		}.manager,
	}
}
