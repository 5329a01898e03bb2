package model

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// setDefaults sets the defaults of a Deployment and of a Service without its addresses; other kinds have none here.
func setDefaults(o runtime.Object) {
	switch o := o.(type) {
	case *appsv1.Deployment:
		defaultDeployment(&o.Spec)
	case *corev1.Service:
		defaultService(&o.Spec)
	}
}

func defaultDeployment(s *appsv1.DeploymentSpec) {
	setDefault(&s.Replicas, 1)
	setDefault(&s.RevisionHistoryLimit, 10)
	setDefault(&s.ProgressDeadlineSeconds, 600)
	if s.Strategy.Type == "" {
		s.Strategy.Type = appsv1.RollingUpdateDeploymentStrategyType
	}
	if s.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		setDefault(&s.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		setDefault(&s.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
		setDefault(&s.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
	}
	defaultPod(&s.Template.Spec)
}

func defaultPod(s *corev1.PodSpec) {
	setDefault(&s.TerminationGracePeriodSeconds, 30)
	setDefault(&s.SecurityContext, corev1.PodSecurityContext{})
	setEmpty(&s.RestartPolicy, corev1.RestartPolicyAlways)
	setEmpty(&s.DNSPolicy, corev1.DNSClusterFirst)
	setEmpty(&s.SchedulerName, corev1.DefaultSchedulerName)
	for i := range s.Containers {
		c := &s.Containers[i]
		setEmpty(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
		setEmpty(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
		setEmpty(&c.ImagePullPolicy, corev1.PullIfNotPresent)
		for j := range c.Ports {
			setEmpty(&c.Ports[j].Protocol, corev1.ProtocolTCP)
		}
	}
}

func defaultService(s *corev1.ServiceSpec) {
	setEmpty(&s.Type, corev1.ServiceTypeClusterIP)
	setEmpty(&s.SessionAffinity, corev1.ServiceAffinityNone)
	if s.Type == corev1.ServiceTypeClusterIP {
		setDefault(&s.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	}
	for i := range s.Ports {
		p := &s.Ports[i]
		setEmpty(&p.Protocol, corev1.ProtocolTCP)
		if p.TargetPort == intstr.FromInt32(0) || p.TargetPort == intstr.FromString("") {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
}

func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = ptr.To(value)
	}
}

func setEmpty[T comparable](field *T, value T) {
	var empty T
	if *field == empty {
		*field = value
	}
}
