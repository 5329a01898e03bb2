package rivals

import (
	"context"
	"fmt"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	quellv1alpha1ac "github.com/hduolab/quell/applyconfig/quell/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const fieldManager = client.FieldOwner("app-controller")

// applier applies child and status each time and leaves it to the API server to find that nothing changed.
type applier struct{ client.Client }

// Reconcile applies the Deployment and the status.
func (r applier) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	app := &quellv1alpha1.App{}
	if err := r.Get(ctx, req.NamespacedName, app); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !app.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	if err := r.Apply(ctx, deploymentConfiguration(app), fieldManager, client.ForceOwnership); err != nil {
		return ctrl.Result{}, fmt.Errorf("apply the Deployment: %w", err)
	}
	deployment := &appsv1.Deployment{}
	if err := r.Get(ctx, req.NamespacedName, deployment); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("read the Deployment: %w", err)
	} // one that the cache does not have yet has no status yet
	report(app, deployment)
	return ctrl.Result{}, r.Status().Apply(ctx, statusConfiguration(app), fieldManager, client.ForceOwnership)
}

func deploymentConfiguration(app *quellv1alpha1.App) *appsv1ac.DeploymentApplyConfiguration {
	owner := metav1.NewControllerRef(app, quellv1alpha1.SchemeGroupVersion.WithKind("App"))
	pod := corev1ac.PodTemplateSpec().
		WithLabels(selector(app)).
		WithSpec(corev1ac.PodSpec().WithContainers(corev1ac.Container().WithName(container).WithImage(app.Spec.Image)))
	return appsv1ac.Deployment(app.Name, app.Namespace).
		WithLabels(selector(app)).
		WithOwnerReferences(metav1ac.OwnerReference().
			WithAPIVersion(owner.APIVersion).WithKind(owner.Kind).WithName(owner.Name).WithUID(owner.UID).
			WithController(*owner.Controller).WithBlockOwnerDeletion(*owner.BlockOwnerDeletion)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(replicas(app)).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector(app))).
			WithTemplate(pod))
}

func statusConfiguration(app *quellv1alpha1.App) *quellv1alpha1ac.AppApplyConfiguration {
	from := app.Status
	status := quellv1alpha1ac.AppStatus().
		WithObservedGeneration(from.ObservedGeneration).
		WithPhase(from.Phase).
		WithReady(from.Ready).
		WithReplicas(*from.Replicas).
		WithReadyReplicas(*from.ReadyReplicas).
		WithAvailableReplicas(*from.AvailableReplicas).
		WithUpdatedReplicas(*from.UpdatedReplicas).
		WithSelector(from.Selector).
		WithImage(from.Image)
	for _, c := range from.Conditions {
		status.WithConditions(metav1ac.Condition().
			WithType(c.Type).WithStatus(c.Status).WithReason(c.Reason).WithMessage(c.Message).
			WithObservedGeneration(c.ObservedGeneration).WithLastTransitionTime(c.LastTransitionTime))
	}
	return quellv1alpha1ac.App(app.Name, app.Namespace).WithStatus(status)
}

func applyAlways() Rival {
	return Rival{
		Name:              "apply-always",
		How:               "server-side apply of child and status at each reconcile, forced, without comparing first",
		Source:            "https://kubernetes.io/docs/reference/using-api/server-side-apply/",
		SeesLostOwnership: true,
		manager: design{reconciler: func(c client.Client) reconcile.Reconciler {
			return applier{c}
		}}.manager,
	}
}
