package v1alpha1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// AppAutoscaling makes a HorizontalPodAutoscaler, which from then on sets the number of Pods: spec.replicas is only where it begins.
// +structType=granular
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || self.minReplicas <= self.maxReplicas",message="minReplicas must not be larger than maxReplicas"
// +kubebuilder:validation:XValidation:rule="has(self.cpuUtilization) || has(self.memoryUtilization) || (has(self.metrics) && size(self.metrics) > 0)",message="give at least one of cpuUtilization, memoryUtilization and metrics"
type AppAutoscaling struct {
	// minReplicas is the lowest number of Pods; unset means 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	MinReplicas int32 `json:"minReplicas,omitempty"`

	// maxReplicas is the highest number of Pods.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +required
	MaxReplicas int32 `json:"maxReplicas,omitempty"`

	// cpuUtilization is the CPU use to aim at, in percent of the Pods' requests.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	CPUUtilization int32 `json:"cpuUtilization,omitempty"`

	// memoryUtilization is the memory use to aim at, in percent of the Pods' requests.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	MemoryUtilization int32 `json:"memoryUtilization,omitempty"`

	// metrics are further metrics of a HorizontalPodAutoscaler.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(m, m.type in ['Resource', 'ContainerResource', 'Pods', 'Object', 'External'] && [has(m.resource), has(m.containerResource), has(m.pods), has(m.object), has(m.external)] == [m.type == 'Resource', m.type == 'ContainerResource', m.type == 'Pods', m.type == 'Object', m.type == 'External'])",message="a metric has a type and exactly the source of that type, for example type: Resource with resource"
	// +optional
	Metrics []autoscalingv2.MetricSpec `json:"metrics,omitempty"`

	// behavior says how fast the number of Pods rises and falls.
	// +optional
	Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior,omitempty"`
}

// AppPodDisruptionBudget limits how many Pods a drain of nodes may take away at once.
// +structType=granular
// +kubebuilder:validation:XValidation:rule="has(self.minAvailable) != has(self.maxUnavailable)",message="give exactly one of minAvailable and maxUnavailable"
type AppPodDisruptionBudget struct {
	// minAvailable is the number or percentage of Pods that must stay.
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 2147483647 : self.matches('^(100|[0-9]{1,2})%$')",message="must be a number, or a percentage up to 100%, for example 1 or 25%"
	// +optional
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`

	// maxUnavailable is the number or percentage of Pods that may be away.
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 2147483647 : self.matches('^(100|[0-9]{1,2})%$')",message="must be a number, or a percentage up to 100%, for example 1 or 25%"
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// unhealthyPodEvictionPolicy says whether Pods that are not ready can be evicted at any time; unset means IfHealthyBudget.
	// +kubebuilder:validation:Enum=IfHealthyBudget;AlwaysAllow
	// +optional
	UnhealthyPodEvictionPolicy policyv1.UnhealthyPodEvictionPolicyType `json:"unhealthyPodEvictionPolicy,omitempty"`
}
