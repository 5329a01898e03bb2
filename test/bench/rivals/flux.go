package rivals

import (
	"context"
	"errors"
	"fmt"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/fluxcd/pkg/runtime/patch"
	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// fluxReconciler reports as the package comment of fluxcd's patch tells, once at the end. Flux's own controllers report their progress
// in between as well, which would be more requests.
type fluxReconciler struct{ client.Client }

// Reconcile makes the Deployment and patches what changed of the status.
func (r fluxReconciler) Reconcile(ctx context.Context, req ctrl.Request) (result ctrl.Result, err error) {
	app := &conditionedApp{}
	if err := r.Get(ctx, req.NamespacedName, app); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !app.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	patcher := patch.NewSerialPatcher(app, r.Client)
	defer func() {
		if failed := patcher.Patch(ctx, app, fluxOptions(err)...); failed != nil {
			err = errors.Join(err, failed)
		}
	}()
	return ctrl.Result{}, r.reconcile(ctx, app)
}

func fluxOptions(err error) []patch.Option {
	options := []patch.Option{
		patch.WithOwnedConditions{Conditions: []string{
			fluxmeta.ReadyCondition, fluxmeta.ReconcilingCondition, fluxmeta.StalledCondition,
			quellv1alpha1.ConditionAvailable, quellv1alpha1.ConditionProgressing,
		}},
		patch.WithFieldOwner("app-controller"),
	}
	if err == nil {
		options = append(options, patch.WithStatusObservedGeneration{})
	}
	return options
}

func (r fluxReconciler) reconcile(ctx context.Context, app *conditionedApp) error {
	deployment, err := createOrPatch(ctx, r.Client, &app.App, app)
	if err != nil {
		conditions.MarkFalse(app, fluxmeta.ReadyCondition, fluxmeta.FailedReason, "%s", err)
		return fmt.Errorf("write the Deployment: %w", err)
	}
	s := describe(&app.App, deployment)
	for _, c := range s.conditions(app.Generation) {
		conditions.Set(app, &c)
	}
	if s.ready {
		conditions.Delete(app, fluxmeta.StalledCondition)
		conditions.Delete(app, fluxmeta.ReconcilingCondition)
	} else {
		conditions.MarkReconciling(app, s.reason, "%s", s.message)
	}
	return nil
}

func fluxRuntime() Rival {
	return Rival{
		Name:              "flux-runtime",
		How:               "fluxcd/pkg/runtime: patch.SerialPatcher at the end of each reconcile, conditions by its conditions package",
		Source:            "https://pkg.go.dev/github.com/fluxcd/pkg/runtime/patch",
		SeesLostOwnership: true,
		manager: design{
			add: addConditioned, object: &conditionedApp{},
			reconciler: func(c client.Client) reconcile.Reconciler { return fluxReconciler{c} },
		}.manager,
	}
}
