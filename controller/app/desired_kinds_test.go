package app

import (
	"encoding/json"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/ssa"
)

// asking is the App of these tests with ports http (8080, on 80 at the Service), admin (9090) and dns (53/UDP), and more of its spec.
func asking(g Gomega, spec string) *quellv1alpha1.App {
	app := shop()
	app.Spec.Service = &quellv1alpha1.AppService{}
	g.Expect(yaml.UnmarshalStrict([]byte(`{ports: [{name: http, containerPort: 8080}, {name: admin, containerPort: 9090}, {name: dns, containerPort: 53, protocol: UDP}],
		service: {ports: [{name: http, port: 80}]}}`), &app.Spec)).To(Succeed())
	g.Expect(yaml.UnmarshalStrict([]byte(spec), &app.Spec)).To(Succeed())
	return app
}

func TestChildrenAskForExactly(t *testing.T) {
	for name, c := range map[string]struct{ kind, app, spec string }{
		"an autoscaler by CPU": {kindAutoscaler, `autoscaling: {maxReplicas: 5, cpuUtilization: 70}`,
			`{scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: shop}, minReplicas: 1, maxReplicas: 5,
			metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 70}}}]}`},
		"an autoscaler with everything": {kindAutoscaler, `autoscaling: {minReplicas: 2, maxReplicas: 5, memoryUtilization: 60, cpuUtilization: 70,
			metrics: [{type: Pods, pods: {metric: {name: queue}, target: {type: AverageValue, averageValue: "0.5"}}}],
			behavior: {scaleDown: {stabilizationWindowSeconds: 0, policies: [{type: Pods, value: 1, periodSeconds: 60}]}}}`,
			`{scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: shop}, minReplicas: 2, maxReplicas: 5,
			metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 70}}},
			{type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: 60}}},
			{type: Pods, pods: {metric: {name: queue}, target: {type: AverageValue, averageValue: 500m}}}],
			behavior: {scaleDown: {stabilizationWindowSeconds: 0, policies: [{type: Pods, value: 1, periodSeconds: 60}]}}}`},
		"a budget of Pods that stay": {kindBudget, `podDisruptionBudget: {minAvailable: 0}`,
			`{selector: {matchLabels: ` + selector + `}, minAvailable: 0}`},
		"a budget of Pods that may be away": {kindBudget, `podDisruptionBudget: {maxUnavailable: 25%, unhealthyPodEvictionPolicy: AlwaysAllow}`,
			`{selector: {matchLabels: ` + selector + `}, maxUnavailable: 25%, unhealthyPodEvictionPolicy: AlwaysAllow}`},
		"an Ingress of a host": {kindIngress, `ingress: {hosts: [{host: a.example.com}]}`,
			`{rules: [{host: a.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: shop, port: {name: http}}}}]}}]}`},
		"an Ingress with everything": {kindIngress, `ingress: {className: nginx, tls: [{secretName: cert, hosts: [a.example.com]}, {}],
			hosts: [{host: a.example.com, paths: [{path: /x, pathType: Exact, port: admin}, {path: /}]}, {host: "*.example.com"}]}`,
			`{ingressClassName: nginx, tls: [{secretName: cert, hosts: [a.example.com]}, {}], rules: [
			{host: a.example.com, http: {paths: [{path: /x, pathType: Exact, backend: {service: {name: shop, port: {name: admin}}}},
			{path: /, pathType: Prefix, backend: {service: {name: shop, port: {name: http}}}}]}},
			{host: "*.example.com", http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: shop, port: {name: http}}}}]}}]}`},
		"a route of every request": {kindRoute, `httpRoute: {parentRefs: [{name: public}]}`,
			`{parentRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: public}], rules: [{matches: [{path: {type: PathPrefix, value: /}}],
			backendRefs: [{group: "", kind: Service, name: shop, port: 80, weight: 1}]}]}`},
		"a route with everything": {kindRoute, `httpRoute: {parentRefs: [{name: public, namespace: infra, sectionName: https}, {name: local}], hostnames: [b.example.com, a.example.com],
			rules: [{port: admin, matches: [{path: /a, pathType: Exact, method: GET, headers: [{name: X-A, value: "1"}]}, {method: POST}]}, {port: http}]}`,
			`{parentRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: public, namespace: infra, sectionName: https},
			{group: gateway.networking.k8s.io, kind: Gateway, name: local}], hostnames: [b.example.com, a.example.com],
			rules: [{matches: [{path: {type: Exact, value: /a}, method: GET, headers: [{type: Exact, name: X-A, value: "1"}]}, {path: {type: PathPrefix, value: /}, method: POST}],
			backendRefs: [{group: "", kind: Service, name: shop, port: 9090, weight: 1}]},
			{matches: [{path: {type: PathPrefix, value: /}}], backendRefs: [{group: "", kind: Service, name: shop, port: 80, weight: 1}]}]}`},
		"a policy that lets nobody in": {kindNetworkPolicy, `networkPolicy: {ingress: {ports: [http]}}`,
			`{podSelector: {matchLabels: ` + selector + `}, policyTypes: [Ingress]}`},
		"a policy that lets the App ask for names only": {kindNetworkPolicy, `networkPolicy: {egress: {}}`,
			`{podSelector: {matchLabels: ` + selector + `}, policyTypes: [Egress], egress: [{ports: [{protocol: UDP, port: 53}, {protocol: TCP, port: 53}]}]}`},
		"a policy with everything": {kindNetworkPolicy, `networkPolicy: {ingress: {from: [{app: web}, {app: web, namespace: front}, {namespaceSelector: {}}], ports: [http, dns]},
			egress: {to: [{namespace: db}, {app: log, namespaceSelector: {matchLabels: {team: ops}}}, {cidr: 10.0.0.0/8}]}}`,
			`{podSelector: {matchLabels: ` + selector + `}, policyTypes: [Ingress, Egress],
			ingress: [{ports: [{protocol: TCP, port: 8080}, {protocol: UDP, port: 53}], from: [
			{podSelector: {matchLabels: {app.kubernetes.io/name: web, app.kubernetes.io/instance: web}}},
			{podSelector: {matchLabels: {app.kubernetes.io/name: web, app.kubernetes.io/instance: web}}, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: front}}},
			{namespaceSelector: {}}]}],
			egress: [{ports: [{protocol: UDP, port: 53}, {protocol: TCP, port: 53}]}, {to: [
			{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: db}}},
			{podSelector: {matchLabels: {app.kubernetes.io/name: log, app.kubernetes.io/instance: log}}, namespaceSelector: {matchLabels: {team: ops}}},
			{ipBlock: {cidr: 10.0.0.0/8}}]}]}`},
		"a headless Service without ports": {kindService, `{ports: [], service: {mode: Headless, ports: []}}`,
			`{type: ClusterIP, clusterIP: None, selector: ` + selector + `}`},
		"a Service with everything": {kindService, `{ports: [{name: http, containerPort: 8080}], service: {type: LoadBalancer, sessionAffinity: ClientIP, externalTrafficPolicy: Local,
			internalTrafficPolicy: Local, trafficDistribution: PreferSameZone, extraPorts: [{name: a, port: 1}, {name: b, port: 2, targetPort: 3, protocol: UDP}, {name: c, port: 4, targetPort: side}]}}`,
			`{type: LoadBalancer, selector: ` + selector + `, sessionAffinity: ClientIP, externalTrafficPolicy: Local, internalTrafficPolicy: Local, trafficDistribution: PreferSameZone,
			ports: [{name: http, port: 80, protocol: TCP, targetPort: http}, {name: a, port: 1, protocol: TCP, targetPort: 1}, {name: b, port: 2, protocol: UDP, targetPort: 3}, {name: c, port: 4, protocol: TCP, targetPort: side}]}`},
		"a Service of extra ports alone": {kindService, `{ports: [], service: {ports: [], extraPorts: [{name: a, port: 1}]}}`,
			`{type: ClusterIP, selector: ` + selector + `, ports: [{name: a, port: 1, protocol: TCP, targetPort: 1}]}`},
		"a ServiceAccount": {kindServiceAccount, `serviceAccount: {create: true, automount: false}`, `null`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var child struct{ Spec json.RawMessage }
			g.Expect(json.Unmarshal([]byte(asJSON(g, desiredOf(g, asking(g, c.app), c.kind))), &child)).To(Succeed())
			if child.Spec == nil {
				child.Spec = []byte("null")
			}
			g.Expect(child.Spec).To(MatchYAML(c.spec))
		})
	}
}

func TestEachChildIsMarkedAsTheApps(t *testing.T) {
	g := NewWithT(t)
	app := asking(g, `{commonLabels: {team: a}, commonAnnotations: {common: "1", own: common}, autoscaling: {maxReplicas: 2, cpuUtilization: 1},
		podDisruptionBudget: {minAvailable: 1}, networkPolicy: {egress: {}}, serviceAccount: {create: true, name: robot, annotations: {own: "2"}},
		service: {annotations: {own: "2"}}, ingress: {hosts: [{host: a}], annotations: {own: "2"}}, httpRoute: {parentRefs: [{name: a}], annotations: {own: "2"}}}`)
	own := map[string]bool{kindService: true, kindIngress: true, kindRoute: true, kindServiceAccount: true}
	for _, k := range kinds {
		var child metav1.PartialObjectMetadata
		g.Expect(json.Unmarshal([]byte(asJSON(g, desiredOf(g, app, k.name))), &child)).To(Succeed())
		g.Expect(child.Kind).To(Equal(k.name))
		g.Expect(child.Namespace).To(Equal("team"))
		g.Expect(child.Name).To(Equal(map[bool]string{false: "shop", true: "robot"}[k.name == kindServiceAccount]))
		g.Expect(child.Labels).To(And(HaveKeyWithValue("team", "a"), HaveKeyWithValue(LabelManagedBy, ManagedBy)))
		g.Expect(child.Annotations).To(And(HaveKeyWithValue("common", "1"), HaveKeyWithValue("own", map[bool]string{false: "common", true: "2"}[own[k.name]])), k.name)
		g.Expect(metav1.IsControlledBy(&child, app)).To(BeTrue())
		g.Expect(k.object()).NotTo(BeIdenticalTo(k.object()))
	}
	g.Expect(app.Spec.CommonAnnotations).To(HaveLen(2))
}

func TestNoChildIsUnasked(t *testing.T) {
	g := NewWithT(t)
	for _, k := range kinds {
		g.Expect(k.wanted(shop())).To(Equal(k.name == kindDeployment), k.name)
	}
	g.Expect(accountName(asking(g, `serviceAccount: {name: theirs}`))).To(BeEmpty())
}

func TestContentThatCannotBeIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ kind, app, words string }{
		"an Ingress path to an unknown port": {kindIngress, `ingress: {hosts: [{host: a, paths: [{path: /x, port: htpp}]}]}`,
			`spec.ingress.hosts[a].paths[/x].port: "htpp" is not in spec.ports, which has "http", "admin", "dns"`},
		"an Ingress path to UDP": {kindIngress, `ingress: {hosts: [{host: a, paths: [{path: /, port: dns}]}]}`,
			`spec.ingress.hosts[a].paths[/].port leads to port "dns", which is UDP: name a TCP port of spec.ports`},
		"an Ingress without ports": {kindIngress, `{ports: [], service: {}, ingress: {hosts: [{host: a}]}}`,
			`spec.ingress.hosts[a].paths[/].port leads to the Service, which has none of the App's ports: add an entry to spec.ports`},
		"an Ingress without a Service": {kindIngress, `{service: {mode: None}, ingress: {hosts: [{host: a}]}}`,
			`spec.ingress.hosts[a].paths[/].port leads to the Service, which spec.service.mode None turns off: remove that mode`},
		"a route to an unknown port": {kindRoute, `httpRoute: {parentRefs: [{name: a}], rules: [{port: http}, {port: web}]}`,
			`spec.httpRoute.rules[1].port: "web" is not in spec.ports, which has "http", "admin", "dns"`},
		"a route without a Service": {kindRoute, `{service: {mode: None}, httpRoute: {parentRefs: [{name: a}]}}`,
			`spec.httpRoute.rules[0].port leads to the Service, which spec.service.mode None turns off: remove that mode`},
		"a policy of an unknown port": {kindNetworkPolicy, `{ports: [], service: {}, networkPolicy: {ingress: {ports: [web]}}}`,
			`spec.networkPolicy.ingress.ports: "web" is not in spec.ports, which is empty`},
		"two ports of one number": {kindService, `service: {ports: [{name: http, port: 80}, {name: admin, port: 80}]}`,
			`spec.ports "http" and spec.ports "admin" would both be port 80/TCP of the Service: give one of them another number in spec.service.ports or spec.service.extraPorts`},
		"an extra port of a number that is taken": {kindService, `service: {extraPorts: [{name: metrics, port: 9090}]}`,
			`spec.ports "admin" and spec.service.extraPorts "metrics" would both be port 9090/TCP of the Service: give one of them another number in spec.service.ports or spec.service.extraPorts`},
		"an extra port of a name that is taken": {kindService, `service: {extraPorts: [{name: http, port: 1}]}`,
			`spec.ports "http" and spec.service.extraPorts "http" would both be port "http" of the Service: rename one of them`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			for _, child := range desiredChildren(observed{app: asking(g, c.app)}) {
				if child.kind != c.kind {
					g.Expect(child.invalid).NotTo(HaveOccurred())
					continue
				}
				var invalid *ssa.InvalidContentError
				g.Expect(child.invalid).To(BeAssignableToTypeOf(invalid))
				g.Expect(child.invalid).To(MatchError(c.words))
				g.Expect(child.desired).To(BeNil())
			}
		})
	}
}

func TestAClusterIPNeverChanges(t *testing.T) {
	for name, c := range map[string]struct {
		mode quellv1alpha1.ServiceMode
		ip   string
		live func(*corev1.Service)
		says string
	}{
		"a headless Service stays one":        {mode: quellv1alpha1.ServiceHeadless, ip: "None"},
		"a Service with an IP stays one":      {ip: "10.0.0.1"},
		"a Service becomes headless":          {mode: quellv1alpha1.ServiceHeadless, ip: "10.0.0.1", says: "the Service has a cluster IP, which can never be changed; delete it with kubectl delete -n team service shop, and it is made anew without one"},
		"a headless Service gets an IP":       {ip: "None", says: "the Service has no cluster IP, which can never be changed; delete it with kubectl delete -n team service shop, and it is made anew with one"},
		"a Service of another becomes ours":   {mode: quellv1alpha1.ServiceHeadless, ip: "10.0.0.1", live: func(s *corev1.Service) { s.OwnerReferences[0].UID = "other" }},
		"a Service that goes makes way":       {mode: quellv1alpha1.ServiceHeadless, ip: "10.0.0.1", live: func(s *corev1.Service) { s.DeletionTimestamp = &metav1.Time{} }},
		"a Service of type ExternalName does": {mode: quellv1alpha1.ServiceHeadless},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			app := asking(g, fmt.Sprintf(`service: {mode: %q}`, c.mode))
			live := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: app.Name, OwnerReferences: []metav1.OwnerReference{{UID: app.UID, Controller: ptr.To(true)}}}}
			live.Spec.ClusterIP = c.ip
			if c.live != nil {
				c.live(live)
			}
			err := sameClusterIP(observed{app: app, live: map[string]client.Object{kindService: live}})
			if c.says == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(HavePrefix(c.says)))
			g.Expect(ssa.IsTerminal(err)).To(BeTrue())
		})
	}
}

func TestAServiceAccountIsInUse(t *testing.T) {
	deployment := func(account string, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 2}}
		d.Spec.Template.Spec.ServiceAccountName = account
		for _, f := range change {
			f(d)
		}
		return d
	}
	for name, c := range map[string]struct {
		asked string
		d     *appsv1.Deployment
		used  bool
	}{
		"the App makes it":                       {`serviceAccount: {create: true, name: old}`, nil, true},
		"the App uses it without making it":      {`serviceAccount: {name: old}`, deployment("old"), true},
		"the App makes another":                  {`serviceAccount: {create: true}`, deployment("shop"), false},
		"the App asks for none":                  {`{}`, deployment(""), false},
		"the Pods' template still says it":       {`{}`, deployment("old"), true},
		"the new template has not been seen yet": {`{}`, deployment("", func(d *appsv1.Deployment) { d.Generation++ }), true},
		"old Pods still run":                     {`{}`, deployment("", func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 }), true},
		"there is no Deployment":                 {`{}`, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(isInUse("old", asking(g, c.asked), c.d)).To(Equal(c.used))
		})
	}
}

func TestEndpointIsTheFirstPort(t *testing.T) {
	g := NewWithT(t)
	g.Expect(endpoint(asking(g, `{}`))).To(Equal("shop.team.svc:80"))
	g.Expect(endpoint(asking(g, `{ports: [], service: {ports: [], extraPorts: [{name: a, port: 7}]}}`))).To(Equal("shop.team.svc:7"))
	g.Expect(endpoint(asking(g, `{ports: [], service: {mode: Headless, ports: []}}`))).To(BeEmpty())
	g.Expect(endpoint(asking(g, `service: {mode: None}`))).To(BeEmpty())
}

func TestAChildThatGoesAsAskedIsNoProblem(t *testing.T) {
	g := NewWithT(t)
	gone := applied{child: child{kind: kindService, name: "shop"}, Result: ssa.Result{Outcome: ssa.Gone}}
	stalled, moving := problem(gone)
	g.Expect([]*finding{stalled, moving}).To(Equal([]*finding{nil, nil}))
	gone.wanted = true
	_, moving = problem(gone)
	g.Expect(moving).NotTo(BeNil())
}
