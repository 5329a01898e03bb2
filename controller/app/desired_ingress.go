package app

import (
	"cmp"
	"fmt"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
)

func wantsIngress(app *quellv1alpha1.App) bool { return app.Spec.Ingress != nil }

// desiredIngress is the full apply configuration of an App's Ingress. The error is an ssa.InvalidContentError.
func desiredIngress(seen observed) (runtime.ApplyConfiguration, error) {
	app, asked := seen.app, seen.app.Spec.Ingress
	spec := networkingv1ac.IngressSpec()
	if asked.ClassName != "" {
		spec.WithIngressClassName(asked.ClassName)
	}
	for _, host := range asked.Hosts {
		rule, err := ingressRule(app, host)
		if err != nil {
			return nil, err
		}
		spec.WithRules(rule)
	}
	for _, certificate := range asked.TLS {
		tls := networkingv1ac.IngressTLS().WithHosts(certificate.Hosts...)
		if certificate.SecretName != "" {
			tls.WithSecretName(certificate.SecretName)
		}
		spec.WithTLS(tls)
	}
	ingress := networkingv1ac.Ingress(app.Name, app.Namespace).WithSpec(spec)
	ingress.ObjectMetaApplyConfiguration = childMetadata(app, app.Name, asked.Annotations)
	return ingress, nil
}

// ingressRule leads the paths of a host to the App, every path where none is given.
func ingressRule(app *quellv1alpha1.App, host quellv1alpha1.AppIngressHost) (*networkingv1ac.IngressRuleApplyConfiguration, error) {
	paths := host.Paths
	if len(paths) == 0 {
		paths = []quellv1alpha1.AppIngressPath{{Path: "/"}}
	}
	rule := networkingv1ac.HTTPIngressRuleValue()
	for _, p := range paths {
		port, err := routedPort(app, fmt.Sprintf("spec.ingress.hosts[%s].paths[%s].port", host.Host, p.Path), p.Port)
		if err != nil {
			return nil, err
		}
		rule.WithPaths(networkingv1ac.HTTPIngressPath().
			WithPath(p.Path).
			WithPathType(cmp.Or(p.PathType, networkingv1.PathTypePrefix)).
			WithBackend(networkingv1ac.IngressBackend().WithService(networkingv1ac.IngressServiceBackend().
				WithName(app.Name).
				WithPort(networkingv1ac.ServiceBackendPort().WithName(port.Name)))))
	}
	return networkingv1ac.IngressRule().WithHost(host.Host).WithHTTP(rule), nil
}
