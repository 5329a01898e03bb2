package faults_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
)

// childKind is one kind of child with what an App's words about it mean. It knows nothing of how the operator makes it.
type childKind struct {
	name   string
	empty  func() client.Object
	wanted func(*quellv1alpha1.AppSpec) bool
	// differs says how a live object is not what the App asks for; "" when it is.
	differs func(*quellv1alpha1.App, client.Object) string
}

var childKinds = []childKind{
	{"Deployment", empty[appsv1.Deployment], func(*quellv1alpha1.AppSpec) bool { return true }, on(deploymentDiffers)},
	{"Service", empty[corev1.Service], func(s *quellv1alpha1.AppSpec) bool { return len(s.Ports) > 0 }, on(serviceDiffers)},
	{"ServiceAccount", empty[corev1.ServiceAccount], func(s *quellv1alpha1.AppSpec) bool { return s.ServiceAccount != nil }, on(accountDiffers)},
	{"NetworkPolicy", empty[networkingv1.NetworkPolicy], func(s *quellv1alpha1.AppSpec) bool { return s.NetworkPolicy != nil }, on(policyDiffers)},
	{
		"HorizontalPodAutoscaler", empty[autoscalingv2.HorizontalPodAutoscaler],
		func(s *quellv1alpha1.AppSpec) bool { return s.Autoscaling != nil }, on(autoscalerDiffers),
	},
	{
		"PodDisruptionBudget", empty[policyv1.PodDisruptionBudget],
		func(s *quellv1alpha1.AppSpec) bool { return s.PodDisruptionBudget != nil }, on(budgetDiffers),
	},
	{"Ingress", empty[networkingv1.Ingress], func(s *quellv1alpha1.AppSpec) bool { return s.Ingress != nil }, on(ingressDiffers)},
	{"HTTPRoute", empty[gatewayv1.HTTPRoute], func(s *quellv1alpha1.AppSpec) bool { return s.HTTPRoute != nil }, on(routeDiffers)},
}

func empty[T any, P interface {
	*T
	client.Object
}]() client.Object {
	return P(new(T))
}

func on[T client.Object](f func(*quellv1alpha1.App, T) string) func(*quellv1alpha1.App, client.Object) string {
	return func(a *quellv1alpha1.App, o client.Object) string { return f(a, o.(T)) }
}

// asAsked is nil when a cluster has exactly what an App asks for, and the App says so; else it says all that differs.
func asAsked(ctx context.Context, a *quellv1alpha1.App) error {
	if err := admin.Get(ctx, client.ObjectKeyFromObject(a), a); err != nil {
		return err
	}
	return errors.Join(childrenAsAsked(ctx, a), podsAsAsked(ctx, a), statusAsAsked(ctx, a))
}

// childrenAsAsked looks at the children alone; those of the kinds that are left out do not matter.
func childrenAsAsked(ctx context.Context, a *quellv1alpha1.App, except ...string) error {
	var all []error
	for _, k := range childKinds {
		if slices.Contains(except, k.name) {
			continue
		}
		if err := k.asAsked(ctx, a); err != nil {
			all = append(all, fmt.Errorf("%s: %w", k.name, err))
		}
	}
	return errors.Join(all...)
}

func (k childKind) asAsked(ctx context.Context, a *quellv1alpha1.App) error {
	o := k.empty()
	err := admin.Get(ctx, client.ObjectKeyFromObject(a), o)
	switch {
	case apierrors.IsNotFound(err) && !k.wanted(&a.Spec):
		return nil
	case err != nil:
		return err
	case !k.wanted(&a.Spec):
		if metav1.IsControlledBy(o, a) {
			return errors.New("is there and not asked for")
		}
		return nil
	}
	if words := commonDiffers(a, o); words != "" {
		return errors.New(words)
	}
	if words := k.differs(a, o); words != "" {
		return errors.New(words)
	}
	return nil
}

// commonDiffers looks at what is the same for all kinds.
func commonDiffers(a *quellv1alpha1.App, o client.Object) string {
	if o.GetDeletionTimestamp() != nil {
		return "is being deleted"
	}
	if !metav1.IsControlledBy(o, a) {
		return fmt.Sprintf("is not the App's but %v's", o.GetOwnerReferences())
	}
	labels := map[string]string{"app.kubernetes.io/name": a.Name, "app.kubernetes.io/instance": a.Name, "app.kubernetes.io/managed-by": "quell"}
	for key, value := range a.Spec.CommonLabels {
		labels[key] = value
	}
	for key, value := range labels {
		if o.GetLabels()[key] != value {
			return fmt.Sprintf("has label %s=%q, not %q", key, o.GetLabels()[key], value)
		}
	}
	if !isOwner(o, "quell-app", "") {
		return "is not applied under the manager quell-app"
	}
	return ""
}

func isOwner(o client.Object, manager, subresource string) bool {
	return slices.ContainsFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == subresource
	})
}

// selects reports whether a selector is that of an App's Pods.
func selects(a *quellv1alpha1.App, selector map[string]string) bool {
	return len(selector) == 2 && selector["app.kubernetes.io/name"] == a.Name && selector["app.kubernetes.io/instance"] == a.Name
}

func deploymentDiffers(a *quellv1alpha1.App, d *appsv1.Deployment) string {
	i := slices.IndexFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return c.Name == "app" })
	low, high := ptr.Deref(a.Spec.Replicas, 1), ptr.Deref(a.Spec.Replicas, 1)
	if s := a.Spec.Autoscaling; s != nil {
		low, high = s.MinReplicas, s.MaxReplicas
	}
	n := ptr.Deref(d.Spec.Replicas, -1)
	switch {
	case i < 0 || len(d.Spec.Template.Spec.Containers) != 1:
		return fmt.Sprintf("has containers %v", d.Spec.Template.Spec.Containers)
	case !selects(a, d.Spec.Selector.MatchLabels):
		return fmt.Sprintf("selects %v", d.Spec.Selector)
	case n < low || n > high:
		return fmt.Sprintf("asks for %d Pods", n)
	case (d.Spec.Template.Spec.ServiceAccountName == a.Name) != (a.Spec.ServiceAccount != nil):
		return "runs as " + d.Spec.Template.Spec.ServiceAccountName
	}
	c := d.Spec.Template.Spec.Containers[i]
	switch {
	case c.Image != a.Spec.Image:
		return "runs " + c.Image
	case len(c.Env) != len(a.Spec.Env) || len(c.Env) > 0 && c.Env[0].Value != a.Spec.Env[0].Value:
		return fmt.Sprintf("has environment %v", c.Env)
	case len(c.Ports) != len(a.Spec.Ports) || len(c.Ports) > 0 && c.Ports[0].ContainerPort != a.Spec.Ports[0].ContainerPort:
		return fmt.Sprintf("has ports %v", c.Ports)
	}
	return ""
}

func serviceDiffers(a *quellv1alpha1.App, s *corev1.Service) string {
	switch {
	case s.Spec.Type != corev1.ServiceTypeClusterIP:
		return fmt.Sprintf("is of type %s", s.Spec.Type)
	case !selects(a, s.Spec.Selector):
		return fmt.Sprintf("selects %v", s.Spec.Selector)
	case len(s.Spec.Ports) != 1 || s.Spec.Ports[0].Port != a.Spec.Ports[0].ContainerPort || s.Spec.Ports[0].TargetPort.String() != "http":
		return fmt.Sprintf("has ports %v", s.Spec.Ports)
	}
	return ""
}

func accountDiffers(*quellv1alpha1.App, *corev1.ServiceAccount) string { return "" }

func policyDiffers(a *quellv1alpha1.App, p *networkingv1.NetworkPolicy) string {
	if !selects(a, p.Spec.PodSelector.MatchLabels) || len(p.Spec.Ingress) != 1 || len(p.Spec.Ingress[0].From) != 1 ||
		p.Spec.Ingress[0].From[0].PodSelector.MatchLabels["app.kubernetes.io/name"] != "web" || len(p.Spec.PolicyTypes) != 1 {
		return fmt.Sprintf("is %+v", p.Spec)
	}
	return ""
}

func autoscalerDiffers(a *quellv1alpha1.App, h *autoscalingv2.HorizontalPodAutoscaler) string {
	asked, target := a.Spec.Autoscaling, h.Spec.ScaleTargetRef
	if target.Kind != "Deployment" || target.Name != a.Name || *h.Spec.MinReplicas != asked.MinReplicas || h.Spec.MaxReplicas != asked.MaxReplicas ||
		len(h.Spec.Metrics) != 1 || *h.Spec.Metrics[0].Resource.Target.AverageUtilization != asked.CPUUtilization {
		return fmt.Sprintf("is %+v", h.Spec)
	}
	return ""
}

func budgetDiffers(a *quellv1alpha1.App, b *policyv1.PodDisruptionBudget) string {
	if b.Spec.MinAvailable != nil || b.Spec.MaxUnavailable == nil || *b.Spec.MaxUnavailable != *a.Spec.PodDisruptionBudget.MaxUnavailable ||
		!selects(a, b.Spec.Selector.MatchLabels) {
		return fmt.Sprintf("is %+v", b.Spec)
	}
	return ""
}

func ingressDiffers(a *quellv1alpha1.App, i *networkingv1.Ingress) string {
	if len(i.Spec.Rules) != 1 || i.Spec.Rules[0].Host != a.Spec.Ingress.Hosts[0].Host || len(i.Spec.Rules[0].HTTP.Paths) != 1 ||
		i.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Name != a.Name {
		return fmt.Sprintf("is %+v", i.Spec)
	}
	return ""
}

func routeDiffers(a *quellv1alpha1.App, r *gatewayv1.HTTPRoute) string {
	if len(r.Spec.Hostnames) != 1 || string(r.Spec.Hostnames[0]) != a.Spec.HTTPRoute.Hostnames[0] || len(r.Spec.ParentRefs) != 1 ||
		string(r.Spec.ParentRefs[0].Name) != a.Spec.HTTPRoute.ParentRefs[0].Name || len(r.Spec.Rules) != 1 {
		return fmt.Sprintf("is %+v", r.Spec)
	}
	return ""
}

// podsAsAsked wants the Pods of one ReplicaSet, as many as the Deployment asks for, and none beside them.
func podsAsAsked(ctx context.Context, a *quellv1alpha1.App) error {
	var d appsv1.Deployment
	var sets appsv1.ReplicaSetList
	var pods corev1.PodList
	of := client.MatchingLabels{"app.kubernetes.io/name": a.Name}
	if err := errors.Join(admin.Get(ctx, client.ObjectKeyFromObject(a), &d), admin.List(ctx, &sets, client.InNamespace(a.Namespace), of),
		admin.List(ctx, &pods, client.InNamespace(a.Namespace), of)); err != nil {
		return err
	}
	sets.Items = slices.DeleteFunc(sets.Items, func(s appsv1.ReplicaSet) bool { return *s.Spec.Replicas == 0 })
	n := int(*d.Spec.Replicas)
	if n > 0 && (len(sets.Items) != 1 || !metav1.IsControlledBy(&sets.Items[0], &d)) {
		return fmt.Errorf("%d ReplicaSets have Pods", len(sets.Items))
	}
	for _, p := range pods.Items {
		if p.DeletionTimestamp != nil || p.Spec.Containers[0].Image != a.Spec.Image || !metav1.IsControlledBy(&p, &sets.Items[0]) {
			return fmt.Errorf("Pod %s runs %s", p.Name, p.Spec.Containers[0].Image)
		}
	}
	if len(pods.Items) != n {
		return fmt.Errorf("%d Pods, not %d", len(pods.Items), n)
	}
	return nil
}

// statusAsAsked wants the status of an App that has all it asks for.
func statusAsAsked(ctx context.Context, a *quellv1alpha1.App) error {
	var d appsv1.Deployment
	if err := admin.Get(ctx, client.ObjectKeyFromObject(a), &d); err != nil {
		return err
	}
	s, n := a.Status, *d.Spec.Replicas
	children := 0
	for _, k := range childKinds {
		if k.wanted(&a.Spec) {
			children++
		}
	}
	seen := map[string]bool{}
	for _, c := range s.Conditions {
		if seen[c.Type] {
			return fmt.Errorf("status has two conditions %s", c.Type)
		}
		seen[c.Type] = true
	}
	for what, is := range map[string]bool{
		"observedGeneration":  s.ObservedGeneration == a.Generation,
		"phase":               s.Phase == quellv1alpha1.PhaseRunning,
		"ready":               s.Ready == fmt.Sprintf("%d/%d", n, n),
		"replicas":            ptr.Deref(s.Replicas, -1) == n && ptr.Deref(s.ReadyReplicas, -1) == n && ptr.Deref(s.UpdatedReplicas, -1) == n,
		"image":               s.Image == a.Spec.Image && s.RolledOutImage == a.Spec.Image && slices.Equal(s.Images, []string{a.Spec.Image}),
		"children":            len(s.Children) == children,
		"conflicts":           len(s.Conflicts) == 0,
		"endpoint":            (s.Endpoint != "") == (len(a.Spec.Ports) > 0),
		"operatorVersion":     s.OperatorVersion == operatorVersion,
		"Ready":               meta.IsStatusConditionTrue(s.Conditions, quellv1alpha1.ConditionReady),
		"Available":           meta.IsStatusConditionTrue(s.Conditions, quellv1alpha1.ConditionAvailable),
		"Stalled":             !seen[quellv1alpha1.ConditionStalled],
		"Reconciling":         !seen[quellv1alpha1.ConditionReconciling],
		"FieldConflict":       !seen[quellv1alpha1.ConditionFieldConflict],
		"AutoscalingActive":   seen[quellv1alpha1.ConditionAutoscalingActive] == (a.Spec.Autoscaling != nil),
		"the status' manager": isOwner(a, "quell-app-status", "status"),
	} {
		if !is {
			return fmt.Errorf("status is wrong about %s: %+v", what, s)
		}
	}
	return nil
}
