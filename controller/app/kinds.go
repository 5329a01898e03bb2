package app

import (
	"slices"

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
	// state tells how a child that exists does what it is for; a Deployment is as its rollout is.
	state func(client.Object) state
	// places are where a child that exists leads to the App; nil for a kind that leads nowhere.
	places func(*quellv1alpha1.App, client.Object) []place
	// exact tells that the content holds only for the live object that it was derived from.
	exact bool
}

// kinds are the kinds of children in the order in which they are applied: what Pods need, and what protects them, before them.
var kinds = []kind{
	{
		name: kindServiceAccount, object: empty[corev1.ServiceAccount], childName: accountName, wanted: wantsAccount,
		desired: desiredAccount, status: noStatus, state: existing,
	},
	{
		name: kindNetworkPolicy, object: empty[networkingv1.NetworkPolicy], childName: appName, wanted: wantsNetworkPolicy,
		desired: desiredNetworkPolicy, status: noStatus, state: existing,
	},
	{
		name: kindDeployment, object: empty[appsv1.Deployment], childName: appName, wanted: always,
		desired: desiredDeployment, status: of(deploymentStatus), state: existing, exact: true,
	},
	{
		name: kindService, object: empty[corev1.Service], childName: appName, wanted: wantsService,
		desired: desiredService, status: of(serviceStatus), state: of(serviceState), places: placesOf(servicePlaces),
	},
	{
		name: kindAutoscaler, object: empty[autoscalingv2.HorizontalPodAutoscaler], childName: appName, wanted: wantsAutoscaler,
		desired: desiredAutoscaler, status: of(autoscalerStatus), state: of(autoscalerState), exact: true,
	},
	{
		name: kindBudget, object: empty[policyv1.PodDisruptionBudget], childName: appName, wanted: wantsBudget,
		desired: desiredBudget, status: of(budgetStatus), state: of(budgetState),
	},
	{
		name: kindIngress, object: empty[networkingv1.Ingress], childName: appName, wanted: wantsIngress,
		desired: desiredIngress, status: of(ingressStatus), state: existing, places: placesOf(ingressPlaces),
	},
	{
		name: kindRoute, object: empty[gatewayv1.HTTPRoute], childName: appName, wanted: wantsRoute,
		desired: desiredRoute, status: of(routeStatus), state: of(routeState), places: placesOf(routePlaces),
	},
}

// kindNamed is one of kinds.
func kindNamed(name string) kind {
	return kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })]
}

// of adapts a function of a kind's Go type to the table.
func of[T client.Object, R any](f func(T) R) func(client.Object) R {
	return func(o client.Object) R { return f(o.(T)) }
}

func placesOf[T client.Object](f func(*quellv1alpha1.App, T) []place) func(*quellv1alpha1.App, client.Object) []place {
	return func(app *quellv1alpha1.App, o client.Object) []place { return f(app, o.(T)) }
}

func empty[T any, P interface {
	*T
	client.Object
}]() client.Object {
	return P(new(T))
}

func appName(app *quellv1alpha1.App) string { return app.Name }

func always(*quellv1alpha1.App) bool { return true }
