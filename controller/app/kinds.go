package app

import (
	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kinds of children.
const (
	kindDeployment = "Deployment"
	kindService    = "Service"
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
}

// kinds are the kinds of children in the order in which they are applied.
var kinds = []kind{
	{kindDeployment, func() client.Object { return &appsv1.Deployment{} }, appName, always, desiredDeployment},
	{kindService, func() client.Object { return &corev1.Service{} }, appName, wantsService, desiredService},
}

func appName(app *quellv1alpha1.App) string { return app.Name }

func always(*quellv1alpha1.App) bool { return true }
