package app

import (
	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Kinds of children.
const (
	kindDeployment     = "Deployment"
	kindService        = "Service"
	kindAutoscaler     = "HorizontalPodAutoscaler"
	kindBudget         = "PodDisruptionBudget"
	kindIngress        = "Ingress"
	kindRoute          = "HTTPRoute"
	kindServiceAccount = "ServiceAccount"
	kindNetworkPolicy  = "NetworkPolicy"
)

// kind is one kind of child. An App has at most one child of each kind.
type kind struct {
	name string
	// object returns an empty object, to read into.
	object func() client.Object
	// childName is the child's name.
	childName func(*quellv1alpha1.App) string
	// wanted tells whether the App asks for the child.
	wanted func(*quellv1alpha1.App) bool
	// desired is the child's full apply configuration. An error that a person can mend is an ssa.InvalidContentError.
	desired func(observed) (runtime.ApplyConfiguration, error)
	// status is the part of the child's status on which the loop depends.
	status func(client.Object) any
}

// kinds are the kinds of children in the order in which they are applied: what Pods need, and what protects them, before them.
var kinds = []kind{
	{kindServiceAccount, empty[corev1.ServiceAccount], accountName, wantsAccount, desiredAccount, noStatus},
	{kindNetworkPolicy, empty[networkingv1.NetworkPolicy], appName, wantsNetworkPolicy, desiredNetworkPolicy, noStatus},
	{kindDeployment, empty[appsv1.Deployment], appName, always, desiredDeployment, projected(deploymentStatus)},
	{kindService, empty[corev1.Service], appName, wantsService, desiredService, projected(serviceStatus)},
	{kindAutoscaler, empty[autoscalingv2.HorizontalPodAutoscaler], appName, wantsAutoscaler, desiredAutoscaler, projected(autoscalerStatus)},
	{kindBudget, empty[policyv1.PodDisruptionBudget], appName, wantsBudget, desiredBudget, projected(budgetStatus)},
	{kindIngress, empty[networkingv1.Ingress], appName, wantsIngress, desiredIngress, projected(ingressStatus)},
	{kindRoute, empty[gatewayv1.HTTPRoute], appName, wantsRoute, desiredRoute, projected(routeStatus)},
}

func empty[T any, P interface {
	*T
	client.Object
}]() client.Object {
	return P(new(T))
}

func appName(app *quellv1alpha1.App) string { return app.Name }

func always(*quellv1alpha1.App) bool { return true }
