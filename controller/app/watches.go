package app

import (
	"context"
	"fmt"
	"maps"
	"slices"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/applyconfig"
	"github.com/hduolab/quell/controller/eventfilter"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// crdName is the CustomResourceDefinition of App.
const crdName = "apps.quell.dev"

// CacheOptions are those of the Shard without a name.
func CacheOptions() cache.Options { return Shard("").CacheOptions() }

// CacheOptions narrow the manager's cache to what the controller needs: the shard's Apps, its children by our label, without the
// managedFields of their status, all autoscalers, and the one CustomResourceDefinition. Other foreign objects cost nothing.
func (s Shard) CacheOptions() cache.Options {
	ours := cache.ByObject{Label: s.children(), Transform: trimManagedFields}
	byObject := map[client.Object]cache.ByObject{
		&quellv1alpha1.App{}: {Label: s.selector(nil), Transform: trimApp},
		crd():                {Field: fields.OneTermEqualSelector("metadata.name", crdName)},
	}
	for _, k := range kinds {
		switch k.name {
		case kindRoute: // the cluster may lack it; see routes
		case kindAutoscaler: // any of the cluster's may target an App's Deployment
			byObject[k.object()] = cache.ByObject{Transform: trimScaler}
		default:
			byObject[k.object()] = ours
		}
	}
	return cache.Options{ByObject: byObject}
}

func crd() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	return m
}

// trimApp drops what is nobody's business here: who owns the spec, and what kubectl apply said last, which is the spec once more.
func trimApp(object any) (any, error) {
	app, ok := object.(*quellv1alpha1.App)
	if !ok {
		return object, nil
	}
	delete(app.Annotations, corev1.LastAppliedConfigAnnotation)
	keepEntries(app, func(e metav1.ManagedFieldsEntry) bool { return e.Subresource == "status" })
	return app, nil
}

// trimManagedFields drops the entries of subresources, which say nothing about what is applied to a child.
func trimManagedFields(object any) (any, error) {
	if o, ok := object.(metav1.Object); ok {
		keepEntries(o, func(e metav1.ManagedFieldsEntry) bool { return e.Subresource != "status" })
	}
	return object, nil
}

// keepEntries leaves an object its managedFields of one sort, in a list without room for others.
func keepEntries(o metav1.Object, keep func(metav1.ManagedFieldsEntry) bool) {
	var kept []metav1.ManagedFieldsEntry
	for _, e := range o.GetManagedFields() {
		if keep(e) {
			kept = append(kept, e)
		}
	}
	o.SetManagedFields(slices.Clip(kept))
}

// SetupWithManager makes the manager run the controller with so many concurrent reconciles. ctx bounds the setup alone.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, concurrent int) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &autoscalingv2.HorizontalPodAutoscaler{}, byTarget, targets); err != nil {
		return fmt.Errorf("index autoscalers by their targets: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.ServiceAccount{}, byController, controllers); err != nil {
		return fmt.Errorf("index ServiceAccounts by their controllers: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &quellv1alpha1.App{}, indexConfig, configKeys); err != nil {
		return fmt.Errorf("index Apps by what rolls their Pods: %w", err)
	}
	own := eventfilter.OwnWrites{
		Manager: statusManager, Subresource: "status",
		Types: applyconfig.NewTypeConverter(mgr.GetScheme()), Scheme: mgr.GetScheme(),
	}
	b := ctrl.NewControllerManagedBy(mgr)
	for _, w := range r.kindWatches() {
		w.bind(mgr)
		b.WatchesRawSource(w)
	}
	for _, k := range kinds {
		if k.name != kindRoute {
			b.Owns(k.object(), builder.WithPredicates(eventfilter.Projected(k.facts)))
		}
	}
	return b.Named("app").
		For(&quellv1alpha1.App{}, builder.WithPredicates(own.Dropped())).
		Watches(&autoscalingv2.HorizontalPodAutoscaler{}, handler.EnqueueRequestsFromMapFunc(targetedApps),
			builder.WithPredicates(eventfilter.Projected(scalerFacts))).
		WatchesMetadata(crd(), handler.EnqueueRequestsFromMapFunc(r.schemaChanged),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrent}).
		Complete(r)
}

// kindWatches are the watches that the controller starts and ends while it runs.
func (r *Reconciler) kindWatches() []*kindWatch {
	return append(slices.Collect(maps.Values(r.configs.watches)), r.routes.kindWatch)
}

// facts are the parts of a child on which the loop depends.
type facts struct {
	Meta   metav1.ObjectMeta
	Owned  string
	Theirs []string
	Status any
}

// facts are what people and the operator ask of a child, what the operator owns, and what App.status shows of the child.
func (k kind) facts(o client.Object) any {
	return facts{
		Meta: metav1.ObjectMeta{
			Generation: o.GetGeneration(), Labels: o.GetLabels(), Annotations: o.GetAnnotations(),
			OwnerReferences: o.GetOwnerReferences(), DeletionTimestamp: o.GetDeletionTimestamp(), Finalizers: o.GetFinalizers(),
		},
		Owned:  eventfilter.OwnedFields(o, ChildManager, ""),
		Theirs: eventfilter.ForeignFields(o, ChildManager),
		Status: k.status(o),
	}
}

func noStatus(client.Object) any { return nil }

func deploymentStatus(d *appsv1.Deployment) any {
	status := *d.Status.DeepCopy()
	status.UnavailableReplicas, status.TerminatingReplicas, status.CollisionCount = 0, nil, nil
	for i := range status.Conditions {
		c := &status.Conditions[i]
		*c = appsv1.DeploymentCondition{Type: c.Type, Status: c.Status, Reason: c.Reason}
	}
	return status
}

// serviceStatus has the spec too, of which the endpoints are made: a Service has no generation.
func serviceStatus(s *corev1.Service) any {
	return corev1.Service{Spec: s.Spec, Status: corev1.ServiceStatus{LoadBalancer: s.Status.LoadBalancer}}
}

func autoscalerStatus(h *autoscalingv2.HorizontalPodAutoscaler) any { return steadyConditions(h) }

// budgetStatus leaves the counts out, which move with the Pods.
func budgetStatus(b *policyv1.PodDisruptionBudget) any {
	return policyv1.PodDisruptionBudgetStatus{ObservedGeneration: b.Status.ObservedGeneration, Conditions: withoutTexts(b.Status.Conditions)}
}

func ingressStatus(i *networkingv1.Ingress) any { return i.Status.LoadBalancer }

func routeStatus(r *gatewayv1.HTTPRoute) any {
	var parents []gatewayv1.RouteParentStatus
	for _, p := range r.Status.Parents {
		p.Conditions = withoutTexts(p.Conditions)
		parents = append(parents, p)
	}
	return parents
}

// withoutTexts keeps of conditions what does not move by itself.
func withoutTexts(conditions []metav1.Condition) []metav1.Condition {
	var kept []metav1.Condition
	for _, c := range conditions {
		kept = append(kept, metav1.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, ObservedGeneration: c.ObservedGeneration})
	}
	return kept
}

// schemaChanged lets content that did not stick be tried again once the CustomResourceDefinition is another.
func (r *Reconciler) schemaChanged(ctx context.Context, _ client.Object) []reconcile.Request {
	r.status.SchemaChanged()
	var apps quellv1alpha1.AppList
	if err := r.Client.List(ctx, &apps); err != nil {
		logf.FromContext(ctx).Error(err, "Apps are not looked at again although their schema changed")
		return nil
	}
	return requests(apps.Items)
}

func requests(apps []quellv1alpha1.App) []reconcile.Request {
	requests := make([]reconcile.Request, len(apps))
	for i := range apps {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&apps[i])
	}
	return requests
}
