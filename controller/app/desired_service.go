package app

import (
	"cmp"
	"fmt"
	"strings"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/ssa"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"
)

// wantsService tells whether the App has a Service: with ports, unless it is turned off. A headless one needs no port.
func wantsService(app *quellv1alpha1.App) bool {
	switch asked := serviceOf(app); asked.Mode {
	case quellv1alpha1.ServiceNone:
		return false
	case quellv1alpha1.ServiceHeadless:
		return true
	default:
		return len(app.Spec.Ports)+len(asked.ExtraPorts) > 0
	}
}

// serviceOf is what the App asks of its Service.
func serviceOf(app *quellv1alpha1.App) quellv1alpha1.AppService {
	return ptr.Deref(app.Spec.Service, quellv1alpha1.AppService{})
}

// desiredService is the full apply configuration of an App's Service. The type is always said: left out, a Service would
// keep the type that somebody else gave it. The error is an ssa.InvalidContentError.
func desiredService(seen observed) (runtime.ApplyConfiguration, error) {
	app, asked := seen.app, serviceOf(seen.app)
	if err := cmp.Or(distinctPorts(app), sameClusterIP(seen)); err != nil {
		return nil, err
	}
	spec := corev1ac.ServiceSpec().
		WithType(cmp.Or(asked.Type, corev1.ServiceTypeClusterIP)).
		WithSelector(selectorLabels(app)).
		WithPorts(servicePorts(app)...)
	if asked.Mode == quellv1alpha1.ServiceHeadless {
		spec.WithClusterIP(corev1.ClusterIPNone)
	}
	setTraffic(spec, asked)
	service := corev1ac.Service(app.Name, app.Namespace).WithSpec(spec)
	service.ObjectMetaApplyConfiguration = childMetadata(app, app.Name, asked.Annotations)
	return service, nil
}

// setTraffic says which Pods traffic goes to, as far as the App does: what it leaves out has defaults that depend on the type.
func setTraffic(spec *corev1ac.ServiceSpecApplyConfiguration, asked quellv1alpha1.AppService) {
	if asked.SessionAffinity != "" {
		spec.WithSessionAffinity(asked.SessionAffinity)
	}
	if asked.ExternalTrafficPolicy != "" {
		spec.WithExternalTrafficPolicy(asked.ExternalTrafficPolicy)
	}
	if asked.InternalTrafficPolicy != "" {
		spec.WithInternalTrafficPolicy(asked.InternalTrafficPolicy)
	}
	if asked.TrafficDistribution != "" {
		spec.WithTrafficDistribution(asked.TrafficDistribution)
	}
}

// servicePorts are those of spec.ports, and the extra ones behind them.
func servicePorts(app *quellv1alpha1.App) []*corev1ac.ServicePortApplyConfiguration {
	var ports []*corev1ac.ServicePortApplyConfiguration
	for _, p := range app.Spec.Ports {
		ports = append(ports, corev1ac.ServicePort().
			WithName(p.Name).
			WithPort(servicePort(app, p)).
			WithProtocol(protocol(p)).
			WithTargetPort(intstr.FromString(p.Name)))
	}
	for _, p := range serviceOf(app).ExtraPorts {
		target := intstr.FromInt32(p.Port)
		if p.TargetPort != nil {
			target = *p.TargetPort
		}
		ports = append(ports, corev1ac.ServicePort().
			WithName(p.Name).
			WithPort(p.Port).
			WithProtocol(cmp.Or(p.Protocol, corev1.ProtocolTCP)).
			WithTargetPort(target))
	}
	return ports
}

// sameClusterIP refuses to turn a Service into a headless one or back: its cluster IP can never be changed.
func sameClusterIP(seen observed) error {
	live, found := seen.live[kindService].(*corev1.Service)
	headless := serviceOf(seen.app).Mode == quellv1alpha1.ServiceHeadless
	if !found || !isOurs(live, seen.app) || live.DeletionTimestamp != nil || live.Spec.ClusterIP == "" || headless == (live.Spec.ClusterIP == corev1.ClusterIPNone) {
		return nil
	}
	is, asked := "has a", "without one, as spec.service.mode Headless asks"
	if !headless {
		is, asked = "has no", "with one; to keep it as it is, set spec.service.mode to Headless"
	}
	return ssa.Invalid("the Service %s cluster IP, which can never be changed; delete it with kubectl delete -n %s service %s, and it is made anew %s",
		is, live.Namespace, live.Name, asked)
}

// distinctPorts refuses two ports of the App on one port of the Service, or under one name.
func distinctPorts(app *quellv1alpha1.App) error {
	var names, numbers []claim
	add := func(by, name string, number int32, protocol corev1.Protocol) {
		names = append(names, claim{by, fmt.Sprintf("port %q of the Service", name)})
		numbers = append(numbers, claim{by, fmt.Sprintf("port %d/%s of the Service", number, protocol)})
	}
	for _, p := range app.Spec.Ports {
		add(fmt.Sprintf("spec.ports %q", p.Name), p.Name, servicePort(app, p), protocol(p))
	}
	for _, p := range serviceOf(app).ExtraPorts {
		add(fmt.Sprintf("spec.service.extraPorts %q", p.Name), p.Name, p.Port, cmp.Or(p.Protocol, corev1.ProtocolTCP))
	}
	return cmp.Or(distinct(names, "rename one of them"),
		distinct(numbers, "give one of them another number in spec.service.ports or spec.service.extraPorts"))
}

// servicePort is the number on which the Service listens for an App port.
func servicePort(app *quellv1alpha1.App, port quellv1alpha1.AppPort) int32 {
	for _, mapped := range serviceOf(app).Ports {
		if mapped.Name == port.Name {
			return mapped.Port
		}
	}
	return port.ContainerPort
}

// routedPort is the App port to which a route leads: the one of a name, or the first. It has to be reachable by HTTP through the
// Service. field is where the name stands in the App; the error is an ssa.InvalidContentError.
func routedPort(app *quellv1alpha1.App, field, name string) (quellv1alpha1.AppPort, error) {
	switch {
	case serviceOf(app).Mode == quellv1alpha1.ServiceNone:
		return quellv1alpha1.AppPort{}, ssa.Invalid("%s leads to the Service, which spec.service.mode None turns off: remove that mode", field)
	case len(app.Spec.Ports) == 0:
		return quellv1alpha1.AppPort{}, ssa.Invalid("%s leads to the Service, which has none of the App's ports: add an entry to spec.ports", field)
	case name == "":
		name = app.Spec.Ports[0].Name
	}
	port, err := namedPort(app, field, name)
	if err == nil && protocol(port) != corev1.ProtocolTCP {
		err = ssa.Invalid("%s leads to port %q, which is %s: name a TCP port of spec.ports", field, name, port.Protocol)
	}
	return port, err
}

// namedPort is the App port of a name that stands in a field of the App. The error is an ssa.InvalidContentError.
func namedPort(app *quellv1alpha1.App, field, name string) (quellv1alpha1.AppPort, error) {
	names := make([]string, len(app.Spec.Ports))
	for i, p := range app.Spec.Ports {
		if p.Name == name {
			return p, nil
		}
		names[i] = fmt.Sprintf("%q", p.Name)
	}
	there := "which is empty"
	if len(names) > 0 {
		there = "which has " + strings.Join(names, ", ")
	}
	return quellv1alpha1.AppPort{}, ssa.Invalid("%s: %q is not in spec.ports, %s", field, name, there)
}
