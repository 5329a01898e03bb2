package app

import (
	"cmp"
	"slices"

	"github.com/hduolab/quell/controller/fieldowners"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// containerName is the name of the application's container in its Pods.
const containerName = "app"

// desiredDeployment is the full apply configuration of an App's Deployment. An error that a person can mend is an
// ssa.InvalidContentError.
func desiredDeployment(seen observed) (runtime.ApplyConfiguration, error) {
	app := seen.app
	template, err := desiredTemplate(seen)
	if err != nil {
		return nil, err
	}
	strategy, err := as[appsv1ac.DeploymentStrategyApplyConfiguration](desiredStrategy(app.Spec.Strategy, seen.deployment()))
	if err != nil {
		return nil, err
	}
	spec := appsv1ac.DeploymentSpec().
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(selectorLabels(app))).
		WithTemplate(template).
		WithStrategy(strategy)
	spec.Replicas = seen.count().value
	spec.MinReadySeconds = app.Spec.MinReadySeconds
	spec.RevisionHistoryLimit = app.Spec.RevisionHistoryLimit
	if deadline := app.Spec.ProgressDeadlineSeconds; deadline > 0 {
		spec.WithProgressDeadlineSeconds(deadline)
	}
	deployment := appsv1ac.Deployment(app.Name, app.Namespace).WithSpec(spec)
	deployment.ObjectMetaApplyConfiguration = childMetadata(app, app.Name, renderingNote(seen))
	return deployment, nil
}

// desiredStrategy is the strategy with the API server's defaults. A rollingUpdate that nobody owns would stay behind when the type
// becomes Recreate, and the API server refuses that. Where there is one already, as in Deployments of the first release, it is made
// ours first; that wakes the loop, and then it can go.
func desiredStrategy(asked *appsv1.DeploymentStrategy, live *appsv1.Deployment) appsv1.DeploymentStrategy {
	var s appsv1.DeploymentStrategy
	if asked != nil {
		asked.DeepCopyInto(&s)
	}
	if s.Type == appsv1.RecreateDeploymentStrategyType && live != nil && hasLooseRollingUpdate(live) {
		return *live.Spec.Strategy.DeepCopy()
	}
	s.Type = cmp.Or(s.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if s.Type == appsv1.RollingUpdateDeploymentStrategyType {
		quarter := intstr.FromString("25%")
		setDefaultPointer(&s.RollingUpdate, appsv1.RollingUpdateDeployment{})
		setDefaultPointer(&s.RollingUpdate.MaxSurge, quarter)
		setDefaultPointer(&s.RollingUpdate.MaxUnavailable, quarter)
	}
	return s
}

// hasLooseRollingUpdate reports whether a Deployment has a rollingUpdate of which nobody owns a part.
func hasLooseRollingUpdate(d *appsv1.Deployment) bool {
	if d.Spec.Strategy.RollingUpdate == nil {
		return false
	}
	entries := fieldowners.Parse(d.ManagedFields)
	return !slices.ContainsFunc([]string{"maxSurge", "maxUnavailable"}, func(field string) bool {
		return len(fieldowners.OwnersOf(entries, fieldpath.MakePathOrDie("spec", "strategy", "rollingUpdate", field))) > 0
	})
}

// setDefaultPointer sets a field that is not set.
func setDefaultPointer[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
