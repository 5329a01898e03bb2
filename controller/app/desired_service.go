package app

import (
	"fmt"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

func wantsService(app *quellv1alpha1.App) bool {
	off := app.Spec.Service != nil && app.Spec.Service.Mode == quellv1alpha1.ServiceNone
	return len(app.Spec.Ports) > 0 && !off
}

// desiredService is the full apply configuration of an App's Service. The type is always said: left out, a Service would
// keep the type that somebody else gave it.
func desiredService(app *quellv1alpha1.App) *corev1ac.ServiceApplyConfiguration {
	spec := corev1ac.ServiceSpec().WithType(corev1.ServiceTypeClusterIP).WithSelector(selectorLabels(app))
	if s := app.Spec.Service; s != nil && s.Type != "" {
		spec.WithType(s.Type)
	}
	for _, p := range app.Spec.Ports {
		spec.WithPorts(corev1ac.ServicePort().
			WithName(p.Name).
			WithPort(servicePort(app, p)).
			WithProtocol(protocol(p)).
			WithTargetPort(intstr.FromString(p.Name)))
	}
	return corev1ac.Service(app.Name, app.Namespace).
		WithLabels(childLabels(app)).
		WithAnnotations(app.Spec.CommonAnnotations).
		WithOwnerReferences(ownerReference(app)).
		WithSpec(spec)
}

// servicePort is the number on which the Service listens for an App port.
func servicePort(app *quellv1alpha1.App, port quellv1alpha1.AppPort) int32 {
	if app.Spec.Service != nil {
		for _, mapped := range app.Spec.Service.Ports {
			if mapped.Name == port.Name {
				return mapped.Port
			}
		}
	}
	return port.ContainerPort
}

// endpoint is the DNS name within the cluster and the first port, "" without a Service.
func endpoint(app *quellv1alpha1.App) string {
	if !wantsService(app) {
		return ""
	}
	return fmt.Sprintf("%s.%s.svc:%d", app.Name, app.Namespace, servicePort(app, app.Spec.Ports[0]))
}
