package library_test

// The code between marks is shown in the documents that the mark names; a test in docs compares them.

import (
	"context"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/applyconfig"
	"github.com/hduolab/quell/controller/eventfilter"
	"github.com/hduolab/quell/controller/ssa"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/applyconfigurations"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The same report by update, as many operators have it.
func (r *Reconciler) updated(ctx context.Context, app *quellv1alpha1.App, child *appsv1.Deployment) (ctrl.Result, error) {
	// begin docs/library.md docs/why.md docs/why.zh.md
	app.Status.ObservedGeneration = app.Generation
	app.Status.ReadyReplicas = &child.Status.ReadyReplicas
	return ctrl.Result{}, r.Status().Update(ctx, app)
	// end
}

func newStatusWriter(mgr ctrl.Manager) (*ssa.StatusWriter, error) {
	// begin docs/library.md
	return ssa.NewStatusWriter(ssa.StatusOptions{Options: ssa.Options{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Types: applyconfig.NewTypeConverter(mgr.GetScheme()),
		FieldManager:   "my-operator-status",
		FormerManagers: []string{"my-operator"}, // what Status().Update wrote under
	}})
	// end
}

// begin docs/library.md
func ready(app *quellv1alpha1.App, child *appsv1.Deployment) *metav1ac.ConditionApplyConfiguration {
	condition := metav1ac.Condition().WithType("Ready").WithObservedGeneration(app.Generation) // and no transition time
	if child.Status.AvailableReplicas < child.Status.Replicas {
		return condition.WithStatus(metav1.ConditionFalse).WithReason("ReplicasUnavailable").WithMessage("not all Pods are available")
	}
	return condition.WithStatus(metav1.ConditionTrue).WithReason("AllReplicasReady").WithMessage("all Pods are available")
}

// end

// begin docs/library.md
func answer(ctx context.Context, recorder events.EventRecorder, app *quellv1alpha1.App, written ssa.Result, err error) (ctrl.Result, error) {
	switch {
	case ssa.IsTerminal(err) && written.Held(): // refused often enough to be asked again after a pause only
		ctrl.LoggerFrom(ctx).Error(err, "refused as before")
	case ssa.IsTerminal(err): // until somebody changes the object, its schema or a policy
		return ctrl.Result{}, reconcile.TerminalError(err)
	case err != nil:
		return ctrl.Result{}, err
	case written.Began && (written.Outcome == ssa.Contended || written.Outcome == ssa.Conflicted):
		recorder.Eventf(app, nil, corev1.EventTypeWarning, string(written.Outcome), "Report", "others hold fields: %s", written)
	case written.Outcome == ssa.SelfChurn, written.Outcome == ssa.DoesNotStick:
		ctrl.LoggerFrom(ctx).Info("the status is not as it should be", "why", written.String()) // a fault of this operator
	}
	return ctrl.Result{RequeueAfter: written.RetryAfter}, nil
}

// end

// begin docs/library.md
const childManager = "my-operator"

func newApplier(mgr ctrl.Manager) (*ssa.Applier, error) {
	return ssa.NewApplier(ssa.Options{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), FieldManager: childManager,
		Types: applyconfigurations.NewTypeConverter(mgr.GetScheme()), // of k8s.io/client-go/applyconfigurations
	})
}

// end

// begin docs/library.md
func applyService(ctx context.Context, c client.Client, applier *ssa.Applier, app *quellv1alpha1.App) (ssa.Result, error) {
	live := &corev1.Service{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(app), live); client.IgnoreNotFound(err) != nil {
		return ssa.Result{}, err
	} else if err != nil {
		live = nil // it does not exist
	}
	owner := metav1ac.OwnerReference().WithAPIVersion("quell.dev/v1alpha1").WithKind("App").
		WithName(app.Name).WithUID(app.UID).WithController(true)
	return applier.Apply(ctx, ssa.Intent{
		Desired: corev1ac.Service(app.Name, app.Namespace).WithOwnerReferences(owner).WithSpec(corev1ac.ServiceSpec().
			WithType(corev1.ServiceTypeClusterIP).
			WithSelector(map[string]string{"app": app.Name}).
			WithPorts(corev1ac.ServicePort().WithName("http").WithPort(80))),
		Live:   live,
		Inputs: ssa.Generation(app),
		// Our fields are ours, but whoever sets a type for this Service knows why.
		Rules: ssa.Rules{Paths: []ssa.PathRule{{Path: ".spec.type", Rule: ssa.Yield}}},
	})
}

// end

// begin docs/library.md
func serviceFacts(s *corev1.Service) any {
	return []any{
		s.Spec, s.Labels, s.OwnerReferences, // a Service has no generation
		eventfilter.OwnedFields(s, childManager, ""), eventfilter.ForeignFields(s, childManager),
	}
}

// end

func watches(mgr ctrl.Manager, own eventfilter.OwnWrites, r reconcile.Reconciler) error {
	// begin docs/library.md
	return ctrl.NewControllerManagedBy(mgr).
		For(&quellv1alpha1.App{}, builder.WithPredicates(own.Dropped())).
		Owns(&corev1.Service{}, builder.WithPredicates(eventfilter.Projected(serviceFacts))).
		Complete(r)
	// end
}
