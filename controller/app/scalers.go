package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// byTarget is the cache's index of autoscalers by the Deployment that they target.
const byTarget = "quell.dev/target-deployment"

// targets is the index of an autoscaler under byTarget: the name of the Deployment that it scales. One that scales an App by the
// App's own scale subresource is none of these, for what it sets is spec.replicas.
func targets(o client.Object) []string {
	h, ok := o.(*autoscalingv2.HorizontalPodAutoscaler)
	if !ok {
		return nil
	}
	ref := h.Spec.ScaleTargetRef
	if gv, err := schema.ParseGroupVersion(ref.APIVersion); err != nil || gv.Group != appsv1.GroupName || ref.Kind != kindDeployment {
		return nil
	}
	return []string{ref.Name}
}

// targetedApps are the Apps whose Deployment an autoscaler may target.
func targetedApps(_ context.Context, o client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range targets(o) {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}})
	}
	return requests
}

// findScalers lists the autoscalers that target the Deployment of an App, in a fixed order. From reads past the cache take no
// index: leave options out.
func findScalers(ctx context.Context, from client.Reader, app *quellv1alpha1.App, options ...client.ListOption) ([]autoscalingv2.HorizontalPodAutoscaler, error) {
	var list autoscalingv2.HorizontalPodAutoscalerList
	if err := from.List(ctx, &list, append(options, client.InNamespace(app.Namespace))...); err != nil {
		return nil, fmt.Errorf("list the autoscalers of namespace %s: %w", app.Namespace, err)
	}
	found := slices.DeleteFunc(list.Items, func(h autoscalingv2.HorizontalPodAutoscaler) bool {
		return !slices.Contains(targets(&h), app.Name)
	})
	slices.SortFunc(found, func(a, b autoscalingv2.HorizontalPodAutoscaler) int {
		return cmp.Or(cmp.Compare(scalerRank(app, &a), scalerRank(app, &b)), cmp.Compare(a.Name, b.Name))
	})
	return found, nil
}

// scalerRank puts the App's own autoscaler first.
func scalerRank(app *quellv1alpha1.App, h *autoscalingv2.HorizontalPodAutoscaler) int {
	if metav1.IsControlledBy(h, app) {
		return 0
	}
	return 1
}

// scalerFacts are the parts of an autoscaler on which the loop depends, whoever made it.
func scalerFacts(h *autoscalingv2.HorizontalPodAutoscaler) any {
	return autoscalingv2.HorizontalPodAutoscaler{
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: h.Spec.ScaleTargetRef, MinReplicas: h.Spec.MinReplicas, MaxReplicas: h.Spec.MaxReplicas,
		},
		Status: autoscalingv2.HorizontalPodAutoscalerStatus{Conditions: steadyConditions(h)},
	}
}

// steadyConditions are the conditions of an autoscaler without what moves by itself.
func steadyConditions(h *autoscalingv2.HorizontalPodAutoscaler) []autoscalingv2.HorizontalPodAutoscalerCondition {
	var steady []autoscalingv2.HorizontalPodAutoscalerCondition
	for _, c := range h.Status.Conditions {
		steady = append(steady, autoscalingv2.HorizontalPodAutoscalerCondition{Type: c.Type, Status: c.Status, Reason: c.Reason})
	}
	return steady
}

// trimScaler keeps of an autoscaler that has nothing to do with an App only what says who scales what. The cache holds all of
// the cluster's, for any of them may target an App's Deployment.
func trimScaler(object any) (any, error) {
	h, ok := object.(*autoscalingv2.HorizontalPodAutoscaler)
	if !ok || isTouched(h) {
		return trimManagedFields(object)
	}
	h.ManagedFields, h.Spec.Metrics, h.Spec.Behavior = nil, nil, nil
	h.Status = autoscalingv2.HorizontalPodAutoscalerStatus{
		CurrentReplicas: h.Status.CurrentReplicas, DesiredReplicas: h.Status.DesiredReplicas, Conditions: steadyConditions(h),
	}
	return h, nil
}

// isTouched reports whether an autoscaler has, or had, to do with an App: it may be the App's own, an orphan, or offered to it.
func isTouched(h *autoscalingv2.HorizontalPodAutoscaler) bool {
	if h.Labels[LabelManagedBy] == ManagedBy {
		return true
	}
	for key := range h.Annotations {
		if strings.HasPrefix(key, quellv1alpha1.SchemeGroupVersion.Group+"/") {
			return true
		}
	}
	return slices.ContainsFunc(h.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == ChildManager })
}
