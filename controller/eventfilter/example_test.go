package eventfilter_test

import (
	"github.com/hduolab/quell/controller/eventfilter"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A controller that is not woken by its own status writes, and by a child only when it reads what changed.
func Example() {
	setup := func(mgr ctrl.Manager, r reconcile.Reconciler) error {
		own := eventfilter.OwnWrites{
			Manager: "my-operator-status", Subresource: "status",
			Types: applyconfigurations.NewTypeConverter(mgr.GetScheme()), Scheme: mgr.GetScheme(),
		}
		return ctrl.NewControllerManagedBy(mgr).
			For(&appsv1.StatefulSet{}, builder.WithPredicates(own.Dropped())).
			Owns(&appsv1.Deployment{}, builder.WithPredicates(eventfilter.Projected(readyReplicas))).
			Owns(&corev1.Service{}, builder.WithPredicates(eventfilter.Asked())).
			Complete(r)
	}
	_ = setup
}

// readyReplicas is what the controller reads of a Deployment, and what it applies to it.
func readyReplicas(d *appsv1.Deployment) any {
	return []any{d.Generation, d.Labels, d.Status.ReadyReplicas, eventfilter.OwnedFields(d, "my-operator", "")}
}

func ExampleOwnWrites_Dropped() {
	own := eventfilter.OwnWrites{Manager: "my-operator-status", Subresource: "status", Types: types, Scheme: scheme.Scheme}
	_ = builder.WithPredicates(own.Dropped())
}

func ExampleAsked() { _ = builder.WithPredicates(eventfilter.Asked()) }

func ExampleProjected() {
	_ = builder.WithPredicates(eventfilter.Projected(func(s *corev1.Service) any { return s.Spec.ClusterIP }))
}

func ExampleOwnedFields() {
	drifted := func(older, newer *corev1.Service) bool {
		return eventfilter.OwnedFields(older, "my-operator", "") != eventfilter.OwnedFields(newer, "my-operator", "")
	}
	_ = drifted
}
