package app

import (
	"context"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/applyconfig"
	"github.com/hduolab/quell/controller/eventfilter"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// crdName is the CustomResourceDefinition of App.
const crdName = "apps.quell.dev"

// CacheOptions narrow the manager's cache to what the controller needs: children that carry our label, without the
// managedFields of their status, and the one CustomResourceDefinition. Foreign Deployments and Services cost nothing.
func CacheOptions() cache.Options {
	ours := cache.ByObject{
		Label:     labels.SelectorFromSet(labels.Set{LabelManagedBy: ManagedBy}),
		Transform: trimManagedFields,
	}
	return cache.Options{ByObject: map[client.Object]cache.ByObject{
		&appsv1.Deployment{}: ours,
		&corev1.Service{}:    ours,
		crd():                {Field: fields.OneTermEqualSelector("metadata.name", crdName)},
	}}
}

func crd() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	return m
}

// trimManagedFields drops the entries of subresources, which say nothing about what is applied to a child.
func trimManagedFields(object any) (any, error) {
	o, ok := object.(metav1.Object)
	if !ok {
		return object, nil
	}
	var kept []metav1.ManagedFieldsEntry
	for _, e := range o.GetManagedFields() {
		if e.Subresource != "status" {
			kept = append(kept, e)
		}
	}
	o.SetManagedFields(kept)
	return object, nil
}

// SetupWithManager makes the manager run the controller with so many concurrent reconciles.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, concurrent int) error {
	own := eventfilter.OwnWrites{
		Manager: StatusManager, Subresource: "status",
		Types: applyconfig.NewTypeConverter(mgr.GetScheme()), Scheme: mgr.GetScheme(),
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("app").
		For(&quellv1alpha1.App{}, builder.WithPredicates(own.Dropped())).
		Owns(&appsv1.Deployment{}, builder.WithPredicates(eventfilter.Projected(deploymentFacts))).
		Owns(&corev1.Service{}, builder.WithPredicates(eventfilter.Projected(serviceFacts))).
		WatchesMetadata(crd(), handler.EnqueueRequestsFromMapFunc(r.schemaChanged),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrent}).
		Complete(r)
}

// facts are the parts of a child on which the loop depends.
type facts struct {
	Meta   metav1.ObjectMeta
	Owned  string
	Status appsv1.DeploymentStatus
}

func serviceFacts(s *corev1.Service) any { return commonFacts(s) }

// commonFacts are what people and the operator ask of a child, and what the operator owns.
func commonFacts(o client.Object) facts {
	return facts{
		Meta: metav1.ObjectMeta{
			Generation: o.GetGeneration(), Labels: o.GetLabels(), Annotations: o.GetAnnotations(),
			OwnerReferences: o.GetOwnerReferences(), DeletionTimestamp: o.GetDeletionTimestamp(),
		},
		Owned: eventfilter.OwnedFields(o, ChildManager, ""),
	}
}

// deploymentFacts add what App.status shows of a Deployment.
func deploymentFacts(d *appsv1.Deployment) any {
	f := commonFacts(d)
	f.Status = *d.Status.DeepCopy()
	f.Status.UnavailableReplicas, f.Status.TerminatingReplicas, f.Status.CollisionCount = 0, nil, nil
	for i := range f.Status.Conditions {
		c := &f.Status.Conditions[i]
		*c = appsv1.DeploymentCondition{Type: c.Type, Status: c.Status, Reason: c.Reason}
	}
	return f
}

// schemaChanged lets content that did not stick be tried again once the CustomResourceDefinition is another.
func (r *Reconciler) schemaChanged(ctx context.Context, _ client.Object) []reconcile.Request {
	r.status.SchemaChanged()
	var apps quellv1alpha1.AppList
	if err := r.Client.List(ctx, &apps); err != nil {
		logf.FromContext(ctx).Error(err, "Apps are not looked at again although their schema changed")
		return nil
	}
	requests := make([]reconcile.Request, len(apps.Items))
	for i := range apps.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&apps.Items[i])
	}
	return requests
}
