package app

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

func TestFactsFollowWhatTheLoopDependsOn(t *testing.T) {
	later := metav1.NewTime(time.Unix(1, 0))
	for name, c := range map[string]struct {
		older, newer client.Object
		wakes        bool
	}{
		"an autoscaler that can scale": {wakes: true, older: &autoscalingv2.HorizontalPodAutoscaler{}, newer: &autoscalingv2.HorizontalPodAutoscaler{
			Status: autoscalingv2.HorizontalPodAutoscalerStatus{Conditions: []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: autoscalingv2.AbleToScale, Status: corev1.ConditionTrue}}}}},
		"what an autoscaler measures": {older: &autoscalingv2.HorizontalPodAutoscaler{}, newer: &autoscalingv2.HorizontalPodAutoscaler{
			Status: autoscalingv2.HorizontalPodAutoscalerStatus{CurrentReplicas: 3, LastScaleTime: &later, CurrentMetrics: []autoscalingv2.MetricStatus{{}}}}},
		"a budget that is counted": {wakes: true, older: &policyv1.PodDisruptionBudget{}, newer: &policyv1.PodDisruptionBudget{Status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1}}},
		"the counts of a budget":   {older: &policyv1.PodDisruptionBudget{}, newer: &policyv1.PodDisruptionBudget{Status: policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 1, DisruptionsAllowed: 1}}},
		"a budget in other words": {
			older: &policyv1.PodDisruptionBudget{Status: policyv1.PodDisruptionBudgetStatus{Conditions: []metav1.Condition{{Type: "A", Message: "1"}}}},
			newer: &policyv1.PodDisruptionBudget{Status: policyv1.PodDisruptionBudgetStatus{Conditions: []metav1.Condition{{Type: "A", Message: "2", LastTransitionTime: later}}}}},
		"a Service with an address": {wakes: true, older: &corev1.Service{}, newer: &corev1.Service{
			Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: "1.2.3.4"}}}}}},
		"a foreign port of a Service": {wakes: true, older: &corev1.Service{}, newer: &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}}}},
		"an Ingress with an address": {wakes: true, older: &networkingv1.Ingress{}, newer: &networkingv1.Ingress{
			Status: networkingv1.IngressStatus{LoadBalancer: networkingv1.IngressLoadBalancerStatus{Ingress: []networkingv1.IngressLoadBalancerIngress{{Hostname: "a"}}}}}},
		"a route that is accepted": {wakes: true, older: route("False", ""), newer: route("True", "")},
		"a route in other words":   {older: route("True", "1"), newer: route("True", "2")},
		"a Deployment that serves": {wakes: true, older: &appsv1.Deployment{}, newer: &appsv1.Deployment{Status: appsv1.DeploymentStatus{AvailableReplicas: 1}}},
		"a Deployment in other words": {
			older: &appsv1.Deployment{Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{Message: "1"}}}},
			newer: &appsv1.Deployment{Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{Message: "2", LastUpdateTime: later}}}}},
		"the token of a ServiceAccount": {older: &corev1.ServiceAccount{}, newer: &corev1.ServiceAccount{Secrets: []corev1.ObjectReference{{Name: "a"}}}},
		"a label":                       {wakes: true, older: &networkingv1.NetworkPolicy{}, newer: &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}}},
		"an owner":                      {wakes: true, older: &networkingv1.NetworkPolicy{}, newer: &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: "1"}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			i := slices.IndexFunc(kinds, func(k kind) bool { return reflect.TypeOf(k.object()) == reflect.TypeOf(c.older) })
			g.Expect(i).To(BeNumerically(">=", 0))
			g.Expect(equality.Semantic.DeepEqual(kinds[i].facts(c.older), kinds[i].facts(c.newer))).To(Equal(!c.wakes))
			g.Expect(equality.Semantic.DeepEqual(kinds[i].facts(c.newer), kinds[i].facts(c.newer.DeepCopyObject().(client.Object)))).To(BeTrue())
		})
	}
}

func route(accepted metav1.ConditionStatus, message string) *gatewayv1.HTTPRoute {
	return &gatewayv1.HTTPRoute{Status: gatewayv1.HTTPRouteStatus{RouteStatus: gatewayv1.RouteStatus{Parents: []gatewayv1.RouteParentStatus{
		{Conditions: []metav1.Condition{{Type: "Accepted", Status: accepted, Message: message}}},
	}}}}
}

func TestAKindThatIsNotServedIsKnownByItsError(t *testing.T) {
	routes := schema.GroupResource{Group: gatewayv1.GroupName, Resource: "httproutes"}
	page := apierrors.NewGenericServerResponse(404, "get", routes, "shop", "404 page not found", 0, true)
	terminating := apierrors.NewMethodNotSupported(routes, "create")
	for name, c := range map[string]struct {
		err                  error
		unserved, duringSend bool
	}{
		"the API server has no such path":            {page, true, true},
		"discovery has no such kind":                 {&meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: gatewayv1.GroupName, Kind: kindRoute}}, true, true},
		"the definition is being deleted":            {terminating, false, true},
		"the object does not exist":                  {apierrors.NewNotFound(routes, "shop"), false, false},
		"the operator may not":                       {apierrors.NewForbidden(routes, "shop", errors.New("no")), false, false},
		"nothing is wrong":                           {nil, false, false},
		"the API server answers nothing that can be": {errors.New("EOF"), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(isUnserved(c.err)).To(Equal(c.unserved))
			g.Expect(errors.Is(unserved(kindRoute, c.err), errGatewayMissing)).To(Equal(c.duringSend))
			if c.err != nil {
				g.Expect(unserved(kindService, c.err)).To(BeIdenticalTo(c.err))
			}
		})
	}
}

func TestTheCacheKeepsOfAnAppWhatIsRead(t *testing.T) {
	g := NewWithT(t)
	spec, status := metav1.ManagedFieldsEntry{Manager: "kubectl"}, metav1.ManagedFieldsEntry{Manager: statusManager, Subresource: "status"}
	app := shop()
	app.ManagedFields = []metav1.ManagedFieldsEntry{spec, status}
	app.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "team": "a"}
	want := app.DeepCopy()
	want.ManagedFields = []metav1.ManagedFieldsEntry{status}
	want.Annotations = map[string]string{"team": "a"}
	g.Expect(trimApp(app)).To(Equal(want))
	g.Expect(trimApp("not an App")).To(Equal("not an App"))
}
