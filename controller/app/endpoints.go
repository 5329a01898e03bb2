package app

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	quellv1alpha1ac "github.com/hduolab/quell/applyconfig/quell/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Bounds of status.endpoints, as its schema has them.
const (
	maxEndpoints = 64
	maxURI       = 512
)

// place is one endpoint.
type place struct {
	scope quellv1alpha1.EndpointScope
	uri   string
}

// places are where an App is reached by the children that are there, the best first: from outside before from within, and
// HTTP before the rest.
func places(app *quellv1alpha1.App, children []applied) []place {
	var all []place
	for _, c := range children {
		if o, k := c.current(), kindNamed(c.kind); o != nil && k.places != nil && c.wanted && c.isHealthy() {
			all = append(all, k.places(app, o)...)
		}
	}
	slices.SortStableFunc(all, func(a, b place) int { return cmp.Compare(a.rank(), b.rank()) })
	return firstOfEach(all)
}

func (p place) rank() int {
	rank := 0
	if p.scope == quellv1alpha1.EndpointInternal {
		rank += 2
	}
	if !strings.HasPrefix(p.uri, "http") {
		rank++
	}
	return rank
}

// firstOfEach keeps the first of equal URIs, and what the schema allows.
func firstOfEach(all []place) []place {
	var kept []place
	for _, p := range all {
		twice := slices.ContainsFunc(kept, func(k place) bool { return k.uri == p.uri })
		if len(kept) < maxEndpoints && len(p.uri) <= maxURI && !twice {
			kept = append(kept, p)
		}
	}
	return kept
}

// setEndpoints sets url, the best endpoint that is no pattern, and all endpoints, sorted as their list is keyed.
func setEndpoints(status *quellv1alpha1ac.AppStatusApplyConfiguration, app *quellv1alpha1.App, children []applied) {
	all := places(app, children)
	if i := slices.IndexFunc(all, func(p place) bool { return !strings.Contains(p.uri, "*") }); i >= 0 {
		status.WithURL(all[i].uri)
	}
	slices.SortFunc(all, func(a, b place) int { return cmp.Compare(a.uri, b.uri) })
	for _, p := range all {
		status.WithEndpoints(quellv1alpha1ac.AppEndpoint().WithURI(p.uri).WithScope(p.scope))
	}
}

// servicePlaces are a Service's DNS name, and its addresses at a load balancer. A node port is no endpoint: which nodes can be
// reached, nobody says.
func servicePlaces(app *quellv1alpha1.App, s *corev1.Service) []place {
	var all []place
	for _, p := range s.Spec.Ports {
		if s.Spec.ClusterIP == corev1.ClusterIPNone {
			p.Port = podPort(app, p)
		}
		all = append(all, place{quellv1alpha1.EndpointInternal, portURI(s.Name+"."+s.Namespace+".svc", p)})
		for _, address := range addresses(s) {
			all = append(all, place{quellv1alpha1.EndpointExternal, portURI(address, p)})
		}
	}
	return all
}

// podPort is where the Pods listen for a Service port: the DNS name of a headless Service leads to the Pods themselves.
func podPort(app *quellv1alpha1.App, p corev1.ServicePort) int32 {
	for _, own := range app.Spec.Ports {
		if own.Name == p.TargetPort.StrVal {
			return own.ContainerPort
		}
	}
	return cmp.Or(p.TargetPort.IntVal, p.Port)
}

// addresses are those that a load balancer gave a Service.
func addresses(s *corev1.Service) []string {
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return nil
	}
	var all []string
	for _, i := range s.Status.LoadBalancer.Ingress {
		if address := cmp.Or(i.Hostname, i.IP); address != "" {
			all = append(all, address)
		}
	}
	return all
}

// portURI has the scheme http or https for a port whose name says so, else the transport protocol.
func portURI(host string, p corev1.ServicePort) string {
	scheme := strings.ToLower(string(cmp.Or(p.Protocol, corev1.ProtocolTCP)))
	if name, _, _ := strings.Cut(p.Name, "-"); scheme == "tcp" && (name == "http" || name == "https") {
		scheme = name
	}
	return scheme + "://" + net.JoinHostPort(host, strconv.Itoa(int(p.Port)))
}

// endpoint is the DNS name within the cluster and the first port, "" without a Service or without a port.
func endpoint(app *quellv1alpha1.App) string {
	var port int32
	switch extra := serviceOf(app).ExtraPorts; {
	case !wantsService(app):
		return ""
	case len(app.Spec.Ports) > 0:
		port = servicePort(app, app.Spec.Ports[0])
	case len(extra) > 0:
		port = extra[0].Port
	default:
		return ""
	}
	return fmt.Sprintf("%s.%s.svc:%d", app.Name, app.Namespace, port)
}

// hasService reports whether there is a Service that is as desired.
func hasService(children []applied) bool {
	return slices.ContainsFunc(children, func(c applied) bool { return c.kind == kindService && c.isHealthy() })
}

func ingressPlaces(_ *quellv1alpha1.App, i *networkingv1.Ingress) []place {
	var all []place
	for _, rule := range i.Spec.Rules {
		scheme := "http"
		if hasCertificate(i, rule.Host) {
			scheme = "https"
		}
		if rule.HTTP == nil || rule.Host == "" {
			continue
		}
		for _, path := range rule.HTTP.Paths {
			all = append(all, place{quellv1alpha1.EndpointExternal, fmt.Sprintf("%s://%s%s", scheme, rule.Host, cmp.Or(path.Path, "/"))})
		}
	}
	return all
}

// hasCertificate reports whether an entry of tls is for a host: it names the host, a pattern that covers it, or no host.
func hasCertificate(i *networkingv1.Ingress, host string) bool {
	return slices.ContainsFunc(i.Spec.TLS, func(t networkingv1.IngressTLS) bool {
		return len(t.Hosts) == 0 || slices.ContainsFunc(t.Hosts, func(h string) bool {
			_, domain, _ := strings.Cut(host, ".")
			return h == host || h == "*."+domain
		})
	})
}

// routePlaces are the host names of a route that its Gateways have accepted. Whether they speak TLS is the Gateway's matter.
func routePlaces(_ *quellv1alpha1.App, r *gatewayv1.HTTPRoute) []place {
	if routeState(r).ready != metav1.ConditionTrue {
		return nil
	}
	var all []place
	for _, host := range r.Spec.Hostnames {
		all = append(all, place{quellv1alpha1.EndpointExternal, fmt.Sprintf("http://%s/", host)})
	}
	return all
}
