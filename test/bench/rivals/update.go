package rivals

import (
	"context"
	"fmt"
	"time"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// updater writes the status with Status().Update, of which there are several kinds.
type updater struct {
	client.Client
	// report writes the status into the App.
	report func(*quellv1alpha1.App, *appsv1.Deployment)
	// compare leaves the update out when the status is equal to the one that was read.
	compare bool
}

// Reconcile makes the Deployment and updates the status.
func (r updater) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	app := &quellv1alpha1.App{}
	if err := r.Get(ctx, req.NamespacedName, app); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !app.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	deployment, err := createOrUpdate(ctx, r.Client, app)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("write the Deployment: %w", err)
	}
	before := app.Status.DeepCopy()
	r.report(app, deployment)
	if r.compare && equality.Semantic.DeepEqual(before, &app.Status) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.Status().Update(ctx, app)
}

// updating is a rival whose reconciler is such an updater.
func updating(of updater, filters ...predicate.Predicate) design {
	return design{filters: filters, reconciler: func(c client.Client) reconcile.Reconciler {
		of.Client = c
		return of
	}}
}

// stampSecond gives Ready the present time as that of its transition, whether there was one or not.
func stampSecond(app *quellv1alpha1.App, d *appsv1.Deployment) {
	report(app, d)
	meta.FindStatusCondition(app.Status.Conditions, quellv1alpha1.ConditionReady).LastTransitionTime = metav1.Now()
}

// stampSubsecond puts the present time into the message of Ready.
func stampSubsecond(app *quellv1alpha1.App, d *appsv1.Deployment) {
	report(app, d)
	ready := meta.FindStatusCondition(app.Status.Conditions, quellv1alpha1.ConditionReady)
	ready.Message += ", as of " + time.Now().UTC().Format(time.RFC3339Nano)
}

func updateSecond() Rival {
	return Rival{
		Name:              "update-second",
		How:               "Status().Update at each reconcile, lastTransitionTime set to metav1.Now() each time",
		Source:            "https://github.com/rabbitmq/messaging-topology-operator/pull/251",
		SeesLostOwnership: true,
		manager:           updating(updater{report: stampSecond}).manager,
	}
}

func updateSubsecond() Rival {
	return Rival{
		Name:              "update-subsecond",
		How:               "Status().Update at each reconcile, the present time in a condition's message",
		Source:            "https://github.com/kube-rs/kube/issues/354",
		SeesLostOwnership: true,
		manager:           updating(updater{report: stampSubsecond}).manager,
	}
}

func generationPredicate() Rival {
	return Rival{
		Name:    "predicate",
		How:     "GenerationChangedPredicate on Apps, Status().Update at each reconcile",
		Source:  "https://gitlab.com/gitlab-org/cloud-native/gitlab-operator/-/merge_requests/219",
		manager: updating(updater{report: report}, predicate.GenerationChangedPredicate{}).manager,
	}
}

func deepEqual() Rival {
	return Rival{
		Name:    "deep-equal",
		How:     "GenerationChangedPredicate on Apps, Status().Update unless Semantic.DeepEqual to the status that was read",
		Source:  "https://github.com/crossplane/crossplane/pull/7283",
		manager: updating(updater{report: report, compare: true}, predicate.GenerationChangedPredicate{}).manager,
	}
}
