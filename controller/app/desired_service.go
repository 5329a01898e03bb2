package app

import (
	"fmt"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/ssa"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

func wantsService(app *quellv1alpha1.App) bool {
	off := app.Spec.Service != nil && app.Spec.Service.Mode == quellv1alpha1.ServiceNone
	return len(app.Spec.Ports) > 0 && !off
}

// desiredService is the full apply configuration of an App's Service. The type is always said: left out, a Service would
// keep the type that somebody else gave it. The error is an ssa.InvalidContentError.
func desiredService(seen observed) (runtime.ApplyConfiguration, error) {
	app := seen.app
	if err := distinctPorts(app); err != nil {
		return nil, err
	}
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
		WithSpec(spec), nil
}

// distinctPorts refuses two App ports on one Service port, which the CustomResourceDefinition cannot rule out.
func distinctPorts(app *quellv1alpha1.App) error {
	type number struct {
		port     int32
		protocol corev1.Protocol
	}
	taken := map[number]string{}
	for _, p := range app.Spec.Ports {
		n := number{servicePort(app, p), protocol(p)}
		if other, found := taken[n]; found {
			return &ssa.InvalidContentError{Reason: fmt.Sprintf(
				"spec.ports %q and %q would both be port %d/%s of the Service: map one of them to another number in spec.service.ports", other, p.Name, n.port, n.protocol)}
		}
		taken[n] = p.Name
	}
	return nil
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
