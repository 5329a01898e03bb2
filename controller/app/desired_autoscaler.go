package app

import (
	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	autoscalingv2ac "k8s.io/client-go/applyconfigurations/autoscaling/v2"
)

func wantsAutoscaler(app *quellv1alpha1.App) bool { return app.Spec.Autoscaling != nil }

// desiredAutoscaler is the full apply configuration of an App's HorizontalPodAutoscaler.
func desiredAutoscaler(seen observed) (runtime.ApplyConfiguration, error) {
	app, asked := seen.app, seen.app.Spec.Autoscaling
	spec := autoscalingv2ac.HorizontalPodAutoscalerSpec().
		WithScaleTargetRef(autoscalingv2ac.CrossVersionObjectReference().
			WithAPIVersion(appsv1.SchemeGroupVersion.String()).WithKind(kindDeployment).WithName(app.Name)).
		WithMinReplicas(max(asked.MinReplicas, 1)).
		WithMaxReplicas(asked.MaxReplicas)
	for _, metric := range metrics(asked) {
		m, err := as[autoscalingv2ac.MetricSpecApplyConfiguration](metric)
		if err != nil {
			return nil, err
		}
		spec.WithMetrics(m)
	}
	if asked.Behavior != nil {
		behavior, err := as[autoscalingv2ac.HorizontalPodAutoscalerBehaviorApplyConfiguration](asked.Behavior)
		if err != nil {
			return nil, err
		}
		spec.WithBehavior(behavior)
	}
	autoscaler := autoscalingv2ac.HorizontalPodAutoscaler(app.Name, app.Namespace).WithSpec(spec)
	autoscaler.ObjectMetaApplyConfiguration = childMetadata(app, app.Name, nil)
	return autoscaler, nil
}

// metrics are those of CPU and memory, and the App's further ones behind them in their order.
func metrics(asked *quellv1alpha1.AppAutoscaling) []autoscalingv2.MetricSpec {
	var metrics []autoscalingv2.MetricSpec
	if asked.CPUUtilization > 0 {
		metrics = append(metrics, utilization(corev1.ResourceCPU, asked.CPUUtilization))
	}
	if asked.MemoryUtilization > 0 {
		metrics = append(metrics, utilization(corev1.ResourceMemory, asked.MemoryUtilization))
	}
	return append(metrics, asked.Metrics...)
}

func utilization(of corev1.ResourceName, percent int32) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{
		Type: autoscalingv2.ResourceMetricSourceType,
		Resource: &autoscalingv2.ResourceMetricSource{
			Name:   of,
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent},
		},
	}
}
