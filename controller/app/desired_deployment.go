package app

import (
	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
)

// ContainerName is the name of the application's container in its Pods.
const ContainerName = "app"

// desiredDeployment is the full apply configuration of an App's Deployment.
func desiredDeployment(seen observed) (runtime.ApplyConfiguration, error) {
	app := seen.app
	container, err := desiredContainer(&app.Spec)
	if err != nil {
		return nil, err
	}
	pod := corev1ac.PodSpec().WithContainers(container)
	for _, secret := range app.Spec.ImagePullSecrets {
		pod.WithImagePullSecrets(corev1ac.LocalObjectReference().WithName(secret.Name))
	}
	template := corev1ac.PodTemplateSpec().
		WithLabels(childLabels(app)).
		WithAnnotations(app.Spec.CommonAnnotations).
		WithSpec(pod)
	return appsv1ac.Deployment(app.Name, app.Namespace).
		WithLabels(childLabels(app)).
		WithAnnotations(app.Spec.CommonAnnotations).
		WithOwnerReferences(ownerReference(app)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(desiredReplicas(app)).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(selectorLabels(app))).
			WithTemplate(template)), nil
}

func desiredReplicas(app *quellv1alpha1.App) int32 {
	if app.Spec.Replicas == nil {
		return 1
	}
	return *app.Spec.Replicas
}

// desiredContainer is the container of the application. The parts that App takes over from core/v1 convert as they are.
func desiredContainer(spec *quellv1alpha1.AppSpec) (*corev1ac.ContainerApplyConfiguration, error) {
	container, err := as[corev1ac.ContainerApplyConfiguration](corev1.Container{
		Name:            ContainerName,
		Image:           spec.Image,
		ImagePullPolicy: spec.ImagePullPolicy,
		Command:         spec.Command,
		Args:            spec.Args,
		Env:             spec.Env,
		EnvFrom:         spec.EnvFrom,
		Ports:           containerPorts(spec),
		LivenessProbe:   spec.LivenessProbe,
		ReadinessProbe:  spec.ReadinessProbe,
		StartupProbe:    spec.StartupProbe,
	})
	if err != nil {
		return nil, err
	}
	container.Resources = nil
	if spec.Resources != nil {
		container.Resources, err = as[corev1ac.ResourceRequirementsApplyConfiguration](spec.Resources)
	}
	return container, err
}

func containerPorts(spec *quellv1alpha1.AppSpec) []corev1.ContainerPort {
	var ports []corev1.ContainerPort
	for _, p := range spec.Ports {
		ports = append(ports, corev1.ContainerPort{Name: p.Name, ContainerPort: p.ContainerPort, Protocol: protocol(p)})
	}
	return ports
}

func protocol(p quellv1alpha1.AppPort) corev1.Protocol {
	if p.Protocol == "" {
		return corev1.ProtocolTCP
	}
	return p.Protocol
}
