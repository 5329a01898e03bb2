package app

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	quellv1alpha1ac "github.com/hduolab/quell/applyconfig/quell/v1alpha1"
	"github.com/hduolab/quell/controller/ssa"
)

// exposed asks for everything that leads to an App.
func exposed(app *quellv1alpha1.App) {
	withPorts(app)
	app.Spec.Ingress, app.Spec.HTTPRoute = &quellv1alpha1.AppIngress{}, &quellv1alpha1.AppHTTPRoute{}
}

func inPlace(kind string, o client.Object) applied {
	return applied{child: child{kind: kind, name: "shop", wanted: true, live: o}, Result: ssa.Result{Outcome: ssa.Unchanged, Object: o}}
}

func ingressWith(tls []networkingv1.IngressTLS, hosts ...string) *networkingv1.Ingress {
	i := &networkingv1.Ingress{Spec: networkingv1.IngressSpec{TLS: tls}}
	for _, h := range hosts {
		host, paths, _ := strings.Cut(h, " ")
		http := &networkingv1.HTTPIngressRuleValue{}
		for _, p := range strings.Fields(paths) {
			http.Paths = append(http.Paths, networkingv1.HTTPIngressPath{Path: p})
		}
		i.Spec.Rules = append(i.Spec.Rules, networkingv1.IngressRule{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: http}})
	}
	return i
}

func TestEndpoints(t *testing.T) {
	ports := func(kind corev1.ServiceType, ports ...corev1.ServicePort) *corev1.Service {
		s := balanced(corev1.LoadBalancerIngress{IP: "2001:db8::1"}, corev1.LoadBalancerIngress{Hostname: "lb.example.com", IP: "192.0.2.1"}, corev1.LoadBalancerIngress{})
		s.Spec.Type, s.Spec.Ports = kind, ports
		return s
	}
	http, sql := corev1.ServicePort{Name: "http", Port: 80}, corev1.ServicePort{Name: "sql", Port: 5432}
	accepted, resolved := said("Accepted", metav1.ConditionTrue, "Accepted"), said("ResolvedRefs", metav1.ConditionTrue, "ResolvedRefs")
	headless := ports("ClusterIP", corev1.ServicePort{Name: "http", Port: 80, TargetPort: intstr.FromString("http")},
		corev1.ServicePort{Name: "a", Port: 70, TargetPort: intstr.FromInt32(7)}, corev1.ServicePort{Name: "b", Port: 9})
	headless.Spec.ClusterIP = corev1.ClusterIPNone
	inside := "Internal http://shop.team.svc:80"
	for name, c := range map[string]struct {
		children []applied
		url      string
		all      []string
	}{
		"none":            {nil, "", nil},
		"Service":         {[]applied{inPlace(kindService, ports("ClusterIP", sql, http))}, "http://shop.team.svc:80", []string{inside, "Internal tcp://shop.team.svc:5432"}},
		"names of ports":  {[]applied{inPlace(kindService, ports("", corev1.ServicePort{Name: "https-admin", Port: 443}, corev1.ServicePort{Name: "http3", Port: 1}, corev1.ServicePort{Name: "http", Port: 53, Protocol: corev1.ProtocolUDP}))}, "https://shop.team.svc:443", []string{"Internal https://shop.team.svc:443", "Internal tcp://shop.team.svc:1", "Internal udp://shop.team.svc:53"}},
		"only TCP":        {[]applied{inPlace(kindService, ports("ClusterIP", sql))}, "tcp://shop.team.svc:5432", []string{"Internal tcp://shop.team.svc:5432"}},
		"node port":       {[]applied{inPlace(kindService, ports("NodePort", http))}, "http://shop.team.svc:80", []string{inside}},
		"headless":        {[]applied{inPlace(kindService, headless)}, "http://shop.team.svc:8080", []string{"Internal http://shop.team.svc:8080", "Internal tcp://shop.team.svc:7", "Internal tcp://shop.team.svc:9"}},
		"load balancer":   {[]applied{inPlace(kindService, ports("LoadBalancer", http))}, "http://[2001:db8::1]:80", []string{"External http://[2001:db8::1]:80", "External http://lb.example.com:80", inside}},
		"Ingress":         {[]applied{inPlace(kindIngress, ingressWith(nil, "b.example.com /x /y", "a.example.com /"))}, "http://b.example.com/x", []string{"External http://a.example.com/", "External http://b.example.com/x", "External http://b.example.com/y"}},
		"certificate":     {[]applied{inPlace(kindIngress, ingressWith([]networkingv1.IngressTLS{{Hosts: []string{"a.example.com"}}}, "b.example.com /", "a.example.com /"))}, "http://b.example.com/", []string{"External http://b.example.com/", "External https://a.example.com/"}},
		"wildcard":        {[]applied{inPlace(kindIngress, ingressWith([]networkingv1.IngressTLS{{Hosts: []string{"*.example.com"}}}, "*.example.com /", "a.example.com /"))}, "https://a.example.com/", []string{"External https://*.example.com/", "External https://a.example.com/"}},
		"any certificate": {[]applied{inPlace(kindIngress, ingressWith([]networkingv1.IngressTLS{{SecretName: "s"}}, "a.example.com /"))}, "https://a.example.com/", []string{"External https://a.example.com/"}},
		"route":           {[]applied{inPlace(kindService, ports("", http)), inPlace(kindRoute, routed(accepted, resolved))}, "http://shop.example.com/", []string{"External http://shop.example.com/", inside}},
		"route, not yet":  {[]applied{inPlace(kindRoute, routed(accepted))}, "", nil},
		"twice":           {[]applied{inPlace(kindIngress, ingressWith(nil, "shop.example.com /")), inPlace(kindRoute, routed(accepted, resolved))}, "http://shop.example.com/", []string{"External http://shop.example.com/"}},
		"too long":        {[]applied{inPlace(kindIngress, ingressWith(nil, "a.example.com /"+strings.Repeat("x", 512)))}, "", nil},
		"in trouble":      {[]applied{{child: child{kind: kindService, wanted: true, live: ports("", http)}, foreign: "it has no owner"}}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			status := quellv1alpha1ac.AppStatus()
			setEndpoints(status, shop(exposed), c.children)
			var all []string
			for _, e := range status.Endpoints {
				all = append(all, fmt.Sprintf("%s %s", *e.Scope, *e.URI))
			}
			g.Expect(all).To(ConsistOf(c.all))
			g.Expect(slices.IsSortedFunc(status.Endpoints, func(a, b quellv1alpha1ac.AppEndpointApplyConfiguration) int { return strings.Compare(*a.URI, *b.URI) })).To(BeTrue())
			if c.url == "" {
				g.Expect(status.URL).To(BeNil())
			} else {
				g.Expect(status.URL).To(HaveValue(Equal(c.url)))
			}
		})
	}
}

func TestEndpointsAreBounded(t *testing.T) {
	g := NewWithT(t)
	var hosts []string
	for i := range 100 {
		hosts = append(hosts, fmt.Sprintf("h%d.example.com /", i))
	}
	g.Expect(places(shop(exposed), []applied{inPlace(kindIngress, ingressWith(nil, hosts...))})).To(HaveLen(maxEndpoints))
}
