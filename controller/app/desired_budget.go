package app

import (
	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
)

func wantsBudget(app *quellv1alpha1.App) bool { return app.Spec.PodDisruptionBudget != nil }

// desiredBudget is the full apply configuration of an App's PodDisruptionBudget.
func desiredBudget(seen observed) (runtime.ApplyConfiguration, error) {
	app, asked := seen.app, seen.app.Spec.PodDisruptionBudget
	spec := policyv1ac.PodDisruptionBudgetSpec().WithSelector(metav1ac.LabelSelector().WithMatchLabels(selectorLabels(app)))
	if asked.MinAvailable != nil {
		spec.WithMinAvailable(*asked.MinAvailable)
	}
	if asked.MaxUnavailable != nil {
		spec.WithMaxUnavailable(*asked.MaxUnavailable)
	}
	if asked.UnhealthyPodEvictionPolicy != "" {
		spec.WithUnhealthyPodEvictionPolicy(asked.UnhealthyPodEvictionPolicy)
	}
	budget := policyv1ac.PodDisruptionBudget(app.Name, app.Namespace).WithSpec(spec)
	budget.ObjectMetaApplyConfiguration = childMetadata(app, app.Name, nil)
	return budget, nil
}
