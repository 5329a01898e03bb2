package ssa_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hduolab/quell/controller/ssa"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/applyconfigurations"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A Service that follows its Deployment. It costs a request when something differs, and none otherwise.
func ExampleApplier_Apply() {
	newApplier := func(mgr ctrl.Manager) (*ssa.Applier, error) { // once, when the operator starts
		return ssa.NewApplier(ssa.Options{
			Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), FieldManager: "shop",
			Types: applyconfigurations.NewTypeConverter(mgr.GetScheme()),
		})
	}
	reconcileService := func(ctx context.Context, c client.Client, applier *ssa.Applier, d *appsv1.Deployment) (reconcile.Result, error) {
		live := &corev1.Service{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(d), live); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, err
		} else if err != nil {
			live = nil
		}
		desired := corev1ac.Service(d.Name, d.Namespace).WithSpec(corev1ac.ServiceSpec().
			WithType(corev1.ServiceTypeClusterIP).
			WithSelector(d.Spec.Selector.MatchLabels).
			WithPorts(corev1ac.ServicePort().WithName("http").WithPort(80)))
		result, err := applier.Apply(ctx, ssa.Intent{
			Desired: desired, Live: live, Inputs: ssa.Generation(d),
			// Our fields are ours, but whoever sets a type for this Service knows why.
			Rules: ssa.Rules{Default: ssa.Force, Paths: []ssa.PathRule{{Path: ".spec.type", Rule: ssa.Yield}}},
		})
		switch {
		case ssa.IsTerminal(err):
			return reconcile.Result{}, reconcile.TerminalError(err)
		case err != nil:
			return reconcile.Result{}, err
		}
		for _, field := range result.Yielded {
			ctrl.LoggerFrom(ctx).Info("left to its owner", "field", field.String())
		}
		if len(result.Rivals()) > 0 {
			ctrl.LoggerFrom(ctx).Info("another writer took fields", "result", result.String())
		}
		return reconcile.Result{RequeueAfter: result.RetryAfter}, nil
	}
	_, _ = newApplier, reconcileService
}

// A status that sums up Pods. Replica counts settle for a second, the condition is written at once.
func ExampleStatusWriter_Write() {
	newWriter := func(mgr ctrl.Manager) (*ssa.StatusWriter, error) {
		return ssa.NewStatusWriter(ssa.StatusOptions{
			Options: ssa.Options{
				Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), FieldManager: "shop-status",
				Types: applyconfigurations.NewTypeConverter(mgr.GetScheme()),
			},
			Details: []string{"replicas", "readyReplicas"}, Settle: time.Second,
		})
	}
	report := func(ctx context.Context, w *ssa.StatusWriter, d *appsv1.Deployment, pods []corev1.Pod) (reconcile.Result, error) {
		status := appsv1ac.DeploymentStatus().WithObservedGeneration(d.Generation).WithReplicas(int32(len(pods))).
			WithConditions(appsv1ac.DeploymentCondition().WithType(appsv1.DeploymentAvailable).
				WithStatus(corev1.ConditionTrue).WithReason("Enough"))
		seen := make([]client.Object, len(pods))
		for i := range pods {
			seen[i] = &pods[i]
		}
		result, err := w.Write(ctx, ssa.Intent{
			Desired: appsv1ac.Deployment(d.Name, d.Namespace).WithStatus(status),
			Live:    d, Inputs: ssa.Version(seen...), Children: len(pods),
		})
		if err != nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{RequeueAfter: result.RetryAfter}, nil
	}
	_, _ = newWriter, report
}

func ExampleIsTerminal() {
	applied := fmt.Errorf("apply: %w", &ssa.InvalidContentError{Reason: `.status.conditions: duplicate entries for key [type="Ready"]`})
	fmt.Println(ssa.IsTerminal(applied))
	fmt.Println(ssa.IsTerminal(errors.New("connection refused")))
	// Output:
	// true
	// false
}

func ExampleGeneration() {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{UID: "a1", Generation: 3, ResourceVersion: "77"}}
	var missing *corev1.Service
	fmt.Println(ssa.Generation(d, missing))
	// Output: a1/3;
}

func ExampleVersion() {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{UID: "a1", Generation: 3, ResourceVersion: "77"}}
	fmt.Println(ssa.Version(d))
	// Output: a1/77;
}
