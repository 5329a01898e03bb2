package rivals

import (
	"context"
	"fmt"

	"github.com/awslabs/operatorpkg/reconciler"
	"github.com/awslabs/operatorpkg/status"
	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// conditionRolledOut stands for Progressing: operatorpkg makes Ready out of conditions that are True when all is well.
const conditionRolledOut = "RolledOut"

// statusApp is an App with the methods of status.Object.
type statusApp struct {
	quellv1alpha1.App `json:",inline"`
}

// GetConditions returns copies of the App's conditions.
func (a *statusApp) GetConditions() []status.Condition {
	var conditions []status.Condition
	for _, c := range a.Status.Conditions {
		conditions = append(conditions, status.Condition(c))
	}
	return conditions
}

// SetConditions replaces the App's conditions.
func (a *statusApp) SetConditions(to []status.Condition) {
	a.Status.Conditions = nil
	for _, c := range to {
		a.Status.Conditions = append(a.Status.Conditions, metav1.Condition(c))
	}
}

// StatusConditions are Ready and what it depends on.
func (a *statusApp) StatusConditions(options ...status.ForOption) status.ConditionSet {
	return status.NewReadyConditions(quellv1alpha1.ConditionAvailable, conditionRolledOut).For(a, options...)
}

// DeepCopyObject keeps the type, which the embedded App's method would not.
func (a *statusApp) DeepCopyObject() runtime.Object {
	c := &statusApp{}
	a.DeepCopyInto(&c.App)
	return c
}

type statusAppList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []statusApp `json:"items"`
}

// DeepCopyObject copies the list and what is in it.
func (l *statusAppList) DeepCopyObject() runtime.Object {
	c := &statusAppList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*statusApp))
	}
	return c
}

// statusReconciler reports as Karpenter's controllers do. operatorpkg's own status controller, which makes metrics and Events of
// conditions and writes no status, is left out: it would only add requests.
type statusReconciler struct{ client.Client }

// Reconcile makes the Deployment and patches the status if anything differs.
func (r statusReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconciler.Result, error) {
	app := &statusApp{}
	if err := r.Get(ctx, req.NamespacedName, app); err != nil {
		return reconciler.Result{}, client.IgnoreNotFound(err)
	}
	if !app.DeletionTimestamp.IsZero() {
		return reconciler.Result{}, nil
	}
	stored := app.DeepCopyObject().(*statusApp)
	deployment, err := createOrPatch(ctx, r.Client, &app.App, app)
	if err != nil {
		return reconciler.Result{}, fmt.Errorf("write the Deployment: %w", err)
	}
	app.report(describe(&app.App, deployment))
	if equality.Semantic.DeepEqual(stored, app) {
		return reconciler.Result{}, nil
	}
	// The lock, since a merge patch replaces the whole list of conditions.
	err = r.Status().Patch(ctx, app, client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return reconciler.Result{Requeue: true}, nil
	}
	return reconciler.Result{}, client.IgnoreNotFound(err)
}

func (a *statusApp) report(s summary) {
	conditions := a.StatusConditions()
	if reason, message := s.availability(); s.available {
		conditions.SetTrueWithReason(quellv1alpha1.ConditionAvailable, reason, message)
	} else {
		conditions.SetFalse(quellv1alpha1.ConditionAvailable, reason, message)
	}
	if s.ready {
		conditions.SetTrueWithReason(conditionRolledOut, s.reason, s.message)
	} else {
		conditions.SetUnknownWithReason(conditionRolledOut, s.reason, s.message)
	}
}

func operatorPackage() Rival {
	return Rival{
		Name:              "operatorpkg",
		How:               "awslabs/operatorpkg/status: its condition set, Status().Patch with the optimistic lock unless Semantic.DeepEqual",
		Source:            "https://github.com/kubernetes-sigs/karpenter/blob/0822440e7ad2af2efaa852657d0235ef240ae3b8/pkg/controllers/nodepool/readiness/controller.go",
		SeesLostOwnership: true,
		manager: design{
			add:    func(s *runtime.Scheme) { addKinds(s, &statusApp{}, &statusAppList{}) },
			object: &statusApp{},
			reconciler: func(c client.Client) reconcile.Reconciler {
				return reconciler.AsReconciler(statusReconciler{c})
			},
		}.manager,
	}
}
