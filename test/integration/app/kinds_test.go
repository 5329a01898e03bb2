package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/test/localcluster"
)

// course is a life of one child, step by step.
type course struct {
	kind     schema.GroupVersionKind
	resource string
	// name is that of the App, and of the child where a step does not say another.
	name  string
	steps []step
}

// step is one thing that a person does, and what is seen then.
type step struct {
	// spec is merged into the App's; "" deletes the child by hand.
	spec string
	// seen is what the child says then, null for what it does not say; "" when it is gone.
	seen string
	// child is the name of the child where it is not the App's.
	child string
	// applies is how often the child was applied for it: once, where the step does not say otherwise.
	applies *int
	// also is what else is to be seen.
	also func(g Gomega, ctx context.Context, namespace string)
}

var none = new(int)

var _ = Describe("The children of an App", Ordered, func() {
	var ns string
	var withRoute *quellv1alpha1.App

	BeforeAll(func(ctx SpecContext) { ns = newNamespace(ctx) })

	It("but its HTTPRoute are made in a cluster without the Gateway API", func(ctx SpecContext) {
		start := mark()
		withRoute = create(ctx, newApp(ns, "routed", func(s *quellv1alpha1.AppSpec) {
			s.HTTPRoute = &quellv1alpha1.AppHTTPRoute{ParentRefs: []quellv1alpha1.AppRouteParent{{Name: "public"}}}
		}))
		Expect(eventuallyCondition(ctx, withRoute, quellv1alpha1.ConditionStalled, "GatewayAPIMissing")).To(And(
			ContainSubstring(`HTTPRoute "routed" cannot be made`), ContainSubstring("install the Gateway API")))
		Eventually(ctx, func(g Gomega) { g.Expect(status(ctx, g, withRoute).Ready).To(Equal("1/1")) }).Should(Succeed())
		service(ctx, Default, withRoute)
		awaitIdle(ctx)
		Expect(count(manager.requests(start), to("httproutes"))).To(BeZero())
	})

	It("include an HTTPRoute once the Gateway API is installed", func(ctx SpecContext) {
		start := mark()
		installGatewayAPI()
		eventuallyRouted(ctx, withRoute)
		Expect(count(manager.writes(start, ns), to("httproutes"))).To(Equal(1))
		acceptRoute(ctx, withRoute)
		converge(ctx, withRoute)
	})

	It("follow each field of the spec, with one apply for each change and none at rest", func(ctx SpecContext) {
		courses := courses()
		for _, c := range courses {
			create(ctx, newApp(ns, c.name, replicas(3), func(s *quellv1alpha1.AppSpec) {
				s.Ports = append(s.Ports, quellv1alpha1.AppPort{Name: "admin", ContainerPort: 9090})
				s.CommonLabels, s.CommonAnnotations = map[string]string{"team": "a"}, map[string]string{"common": "1", "own": "common"}
			}))
		}
		for _, c := range courses {
			converge(ctx, newApp(ns, c.name))
		}
		for i := range rounds(courses) {
			walk(ctx, ns, courses, i)
		}
	})

	It("survive that the Gateway API is removed, and come back with it", func(ctx SpecContext) {
		kubectl("delete", "crd", "httproutes.gateway.networking.k8s.io")
		eventuallyCondition(ctx, withRoute, quellv1alpha1.ConditionStalled, "GatewayAPIMissing")
		awaitIdle(ctx)
		start := mark()
		createReady(ctx, newApp(ns, "other"))
		Expect(count(manager.requests(start), to("httproutes"))).To(BeZero())

		installGatewayAPI()
		eventuallyRouted(ctx, withRoute)
	})

	It("that are not asked for any more go, even if that was said while the operator was away", func(ctx SpecContext) {
		robot := createReady(ctx, newApp(ns, "with-account", func(s *quellv1alpha1.AppSpec) {
			s.ServiceAccount = &quellv1alpha1.AppServiceAccount{Create: ptr.To(true)}
		}))
		manager.stop()
		change(ctx, withRoute, func(a *quellv1alpha1.App) { a.Spec.HTTPRoute = nil })
		change(ctx, robot, func(a *quellv1alpha1.App) { a.Spec.ServiceAccount = nil })

		By("taking away the right to read HTTPRoutes")
		role := filepath.Join(configDir, "rbac", "role.yaml")
		DeferCleanup(func() { kubectl("apply", "-f", role) })
		revoke(ctx, gatewayv1.GroupName, "httproutes")
		manager.start()
		Eventually(ctx, func(g Gomega) { accountIsGone(robot.Name)(g, ctx, ns) }).Should(Succeed())
		Expect(eventuallyCondition(ctx, withRoute, quellv1alpha1.ConditionStalled, "Forbidden")).To(And(
			ContainSubstring(`HTTPRoute "routed"`), ContainSubstring(`cannot get resource "httproutes"`)))
		expectCalm(ctx, ns, atRest)

		By("giving it back")
		kubectl("apply", "-f", role)
		Eventually(ctx, func(g Gomega) {
			touch(ctx, withRoute) // it would be looked at a minute later
			err := admin.Get(ctx, client.ObjectKeyFromObject(withRoute), &gatewayv1.HTTPRoute{})
			g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
		}).WithPolling(time.Second).Should(Succeed())
		converge(ctx, withRoute)
	})
})

// walk does the i-th step of each course at once, and counts what the operator sends for it.
func walk(ctx context.Context, ns string, courses []course, i int) {
	GinkgoHelper()
	By(fmt.Sprintf("step %d", i+1))
	start := mark()
	for _, c := range courses {
		if i < len(c.steps) {
			c.do(ctx, ns, c.steps[i])
		}
	}
	for _, c := range courses {
		if i < len(c.steps) {
			Eventually(ctx, func(g Gomega) { c.see(ctx, g, ns, c.steps[i]) }).Should(Succeed(), "%s, step %d", c.kind.Kind, i+1)
		}
	}

	rest := mark()
	for _, c := range courses {
		touch(ctx, newApp(ns, c.name))
	}
	awaitIdle(ctx)
	writes := slices.DeleteFunc(manager.writes(rest, ns), to("events")) // one of the step may have been on its way
	Expect(localcluster.Summary(writes)).To(Equal(localcluster.Summary(nil)), "at rest after step %d", i+1)
	for _, c := range courses {
		if i < len(c.steps) {
			c.expectApplies(start, ns, c.steps[i], i)
		}
	}
}

func (c course) do(ctx context.Context, ns string, s step) {
	GinkgoHelper()
	if s.spec == "" {
		child := c.empty(ns, s)
		Expect(admin.Delete(ctx, child)).To(Succeed())
		return
	}
	patch, err := yaml.YAMLToJSON([]byte("spec: " + s.spec))
	Expect(err).NotTo(HaveOccurred())
	Expect(admin.Patch(ctx, newApp(ns, c.name), client.RawPatch(types.MergePatchType, patch))).To(Succeed(), "%s: %s", c.kind.Kind, s.spec)
}

func (c course) empty(ns string, s step) *unstructured.Unstructured {
	child := &unstructured.Unstructured{}
	child.SetGroupVersionKind(c.kind)
	child.SetNamespace(ns)
	child.SetName(c.name)
	if s.child != "" {
		child.SetName(s.child)
	}
	return child
}

// see wants the child to be as a step asks, and the App's status to have nothing left to say.
func (c course) see(ctx context.Context, g Gomega, ns string, s step) {
	a := newApp(ns, c.name)
	g.Expect(status(ctx, g, a).ObservedGeneration).To(Equal(a.Generation))
	g.Expect(meta.FindStatusCondition(a.Status.Conditions, quellv1alpha1.ConditionStalled)).To(BeNil())
	g.Expect(a.Status.Conditions).To(ContainElement(And(HaveField("Type", quellv1alpha1.ConditionProgressing), HaveField("Reason", "RolledOut"))))
	d := deployment(ctx, g, a)
	g.Expect(d.Status.ObservedGeneration).To(Equal(d.Generation))
	g.Expect(*a.Status.Replicas).To(And(Equal(d.Status.Replicas), Equal(*d.Spec.Replicas)))
	g.Expect(*a.Status.UpdatedReplicas).To(And(Equal(d.Status.UpdatedReplicas), Equal(d.Status.AvailableReplicas)))
	g.Expect(slices.DeleteFunc(a.Status.Children, func(row quellv1alpha1.AppChild) bool {
		return row.Ready != metav1.ConditionUnknown || row.Kind == "HTTPRoute" // for which there is no Gateway
	})).To(BeEmpty())
	if s.also != nil {
		s.also(g, ctx, ns)
	}
	child := c.empty(ns, s)
	err := admin.Get(ctx, client.ObjectKeyFromObject(child), child)
	if s.seen == "" {
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
		return
	}
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(child.GetDeletionTimestamp()).To(BeNil())
	g.Expect(child.GetLabels()).To(HaveKeyWithValue("team", "a"))
	g.Expect(child.GetAnnotations()).To(HaveKeyWithValue("common", "1"))
	g.Expect(metav1.IsControlledBy(child, a)).To(BeTrue())
	var want map[string]any
	g.Expect(yaml.Unmarshal([]byte(s.seen), &want)).To(Succeed())
	g.Expect(missing("", want, plain(g, child.Object))).To(BeEmpty())
	if c.kind.Kind == "HorizontalPodAutoscaler" { // whose status the App's row follows
		observed, _, _ := unstructured.NestedInt64(child.Object, "status", "observedGeneration")
		g.Expect(observed).To(Equal(child.GetGeneration()))
	}
}

func (c course) expectApplies(start localcluster.Mark, ns string, s step, i int) {
	GinkgoHelper()
	want := 1
	if s.applies != nil {
		want = *s.applies
	}
	if s.seen == "" {
		want = 0
	}
	writes := manager.requests(start, localcluster.Writes, to(c.resource), func(r localcluster.Request) bool {
		return r.Namespace == ns && (r.Name == c.name || r.Name == s.child)
	})
	Expect(count(writes, func(r localcluster.Request) bool { return r.Verb == "patch" })).To(Equal(want), "applies of %s after step %d: %s", c.kind.Kind, i+1, localcluster.Summary(writes))
}

func rounds(courses []course) int {
	n := 0
	for _, c := range courses {
		n = max(n, len(c.steps))
	}
	return n
}

// plain is a value as encoding/json reads it.
func plain(g Gomega, value any) any {
	raw, err := json.Marshal(value)
	g.Expect(err).NotTo(HaveOccurred())
	var out any
	g.Expect(json.Unmarshal(raw, &out)).To(Succeed())
	return out
}

// missing tells which part of want is not in have: maps may have more, lists may not, null is what is not there.
func missing(path string, want, have any) string {
	switch w := want.(type) {
	case map[string]any:
		h, _ := have.(map[string]any)
		for key, value := range w {
			if words := missing(path+"."+key, value, h[key]); words != "" {
				return words
			}
		}
		return ""
	case []any:
		h, _ := have.([]any)
		for i := range w {
			if len(w) != len(h) {
				break
			}
			if words := missing(fmt.Sprintf("%s[%d]", path, i), w[i], h[i]); words != "" {
				return words
			}
		}
		if len(w) == len(h) {
			return ""
		}
	}
	if reflect.DeepEqual(want, have) {
		return ""
	}
	return fmt.Sprintf("%s is %v, not %v", path, have, want)
}

func courses() []course {
	own := `metadata: {annotations: {own: "2"}}`
	return []course{
		{autoscaling("HorizontalPodAutoscaler"), "horizontalpodautoscalers", "scaled", []step{
			{spec: `{autoscaling: {maxReplicas: 5, cpuUtilization: 80}}`, seen: `{metadata: {annotations: {own: common}}, spec: {minReplicas: 1, maxReplicas: 5, behavior: null,
				scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: scaled}, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]}}`},
			{seen: `spec: {maxReplicas: 5}`},
			{spec: `{autoscaling: {minReplicas: 2, maxReplicas: 6, memoryUtilization: 60, cpuUtilization: null,
				metrics: [{type: Pods, pods: {metric: {name: queue}, target: {type: AverageValue, averageValue: "0.5"}}}, {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 70}}}],
				behavior: {scaleDown: {stabilizationWindowSeconds: 0, policies: [{type: Pods, value: 1, periodSeconds: 60}]}}}}`,
				seen: `spec: {minReplicas: 2, maxReplicas: 6, metrics: [{resource: {name: memory}}, {pods: {target: {averageValue: 500m}}}, {resource: {name: cpu}}],
				behavior: {scaleDown: {stabilizationWindowSeconds: 0, policies: [{type: Pods, value: 1, periodSeconds: 60}]}}}`},
			{spec: `{autoscaling: {metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 70}}}, {type: Pods, pods: {metric: {name: queue}, target: {type: AverageValue, averageValue: "2"}}}],
				behavior: {scaleDown: null, scaleUp: {selectPolicy: Disabled}}}}`,
				seen: `spec: {metrics: [{resource: {name: memory}}, {resource: {name: cpu}}, {pods: {target: {averageValue: "2"}}}], behavior: {scaleUp: {selectPolicy: Disabled}}}`},
			{spec: `{autoscaling: {minReplicas: null, memoryUtilization: null, cpuUtilization: 50, metrics: null, behavior: null}}`,
				seen: `spec: {minReplicas: 1, metrics: [{resource: {name: cpu, target: {averageUtilization: 50}}}]}`},
			{spec: `{autoscaling: null}`},
		}},
		{policy("PodDisruptionBudget"), "poddisruptionbudgets", "guarded", []step{
			{spec: `{podDisruptionBudget: {minAvailable: 1}}`, seen: `{metadata: {annotations: {own: common}}, spec: {minAvailable: 1, maxUnavailable: null, selector: {matchLabels: {app.kubernetes.io/name: guarded}}}}`},
			{seen: `spec: {minAvailable: 1}`},
			{spec: `{podDisruptionBudget: {minAvailable: null, maxUnavailable: 25%}}`, seen: `spec: {minAvailable: null, maxUnavailable: 25%}`},
			{spec: `{podDisruptionBudget: {minAvailable: 50%, maxUnavailable: null, unhealthyPodEvictionPolicy: AlwaysAllow}}`,
				seen: `spec: {minAvailable: 50%, maxUnavailable: null, unhealthyPodEvictionPolicy: AlwaysAllow}`},
			{spec: `{podDisruptionBudget: {minAvailable: null, maxUnavailable: 0, unhealthyPodEvictionPolicy: null}}`,
				seen: `spec: {minAvailable: null, maxUnavailable: 0, unhealthyPodEvictionPolicy: null}`},
			{spec: `{podDisruptionBudget: null}`},
		}},
		{networking("Ingress"), "ingresses", "exposed", []step{
			{spec: `{ingress: {hosts: [{host: a.example.com}]}}`, seen: `{metadata: {annotations: {own: common}}, spec: {ingressClassName: null, tls: null, rules: [{host: a.example.com,
				http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: exposed, port: {name: http}}}}]}}]}}`},
			{seen: `spec: {rules: [{host: a.example.com}]}`},
			{spec: `{ingress: {className: nginx, annotations: {own: "2"}, tls: [{secretName: cert, hosts: [a.example.com]}],
				hosts: [{host: b.example.com, paths: [{path: /x, pathType: Exact, port: admin}, {path: /y}]}, {host: a.example.com}]}}`,
				seen: `{` + own + `, spec: {ingressClassName: nginx, tls: [{secretName: cert, hosts: [a.example.com]}], rules: [
				{host: b.example.com, http: {paths: [{path: /x, pathType: Exact, backend: {service: {port: {name: admin}}}}, {path: /y, pathType: Prefix}]}}, {host: a.example.com}]}}`},
			{spec: `{ingress: {tls: [{hosts: [b.example.com]}], hosts: [{host: b.example.com, paths: [{path: /y, pathType: ImplementationSpecific}, {path: /x, pathType: Prefix}]}]}}`,
				seen: `spec: {tls: [{secretName: null, hosts: [b.example.com]}], rules: [{host: b.example.com, http: {paths: [{path: /y, pathType: ImplementationSpecific}, {path: /x, pathType: Prefix, backend: {service: {port: {name: http}}}}]}}]}`},
			{spec: `{ingress: {className: null, annotations: null, tls: null, hosts: [{host: a.example.com}]}}`,
				seen: `{metadata: {annotations: {own: common}}, spec: {ingressClassName: null, tls: null, rules: [{host: a.example.com, http: {paths: [{path: /, pathType: Prefix}]}}]}}`},
			{spec: `{ingress: null}`},
		}},
		{networking("NetworkPolicy"), "networkpolicies", "walled", []step{
			{spec: `{networkPolicy: {ingress: {from: [{app: web}]}}}`, seen: `{metadata: {annotations: {own: common}}, spec: {podSelector: {matchLabels: {app.kubernetes.io/name: walled}}, policyTypes: [Ingress], egress: null,
				ingress: [{ports: null, from: [{podSelector: {matchLabels: {app.kubernetes.io/name: web}}}]}]}}`},
			{seen: `spec: {policyTypes: [Ingress]}`},
			{spec: `{networkPolicy: {ingress: {from: [{namespaceSelector: {}}, {app: web, namespace: front}], ports: [admin]}, egress: {to: [{cidr: 10.0.0.0/8}, {namespace: db}]}}}`,
				seen: `spec: {policyTypes: [Ingress, Egress], ingress: [{ports: [{port: 9090, protocol: TCP}], from: [{namespaceSelector: {}, podSelector: null},
				{podSelector: {matchLabels: {app.kubernetes.io/name: web}}, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: front}}}]}],
				egress: [{to: null, ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]}, {ports: null, to: [{ipBlock: {cidr: 10.0.0.0/8}}, {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: db}}}]}]}`},
			{spec: `{networkPolicy: {ingress: {from: [], ports: null}, egress: {to: null}}}`, seen: `spec: {policyTypes: [Ingress, Egress], ingress: null, egress: [{ports: [{port: 53}, {port: 53}]}]}`},
			{spec: `{networkPolicy: {ingress: null}}`, seen: `spec: {policyTypes: [Egress], ingress: null, egress: [{ports: [{port: 53}, {port: 53}]}]}`},
			{spec: `{networkPolicy: null}`},
		}},
		{core("Service"), "services", "served", []step{
			{spec: `{service: {type: NodePort, annotations: {own: "2"}, sessionAffinity: ClientIP, externalTrafficPolicy: Local}}`,
				seen: `{` + own + `, spec: {type: NodePort, sessionAffinity: ClientIP, externalTrafficPolicy: Local, ports: [{name: http, port: 8080, targetPort: http}, {name: admin, port: 9090}]}}`},
			{seen: `spec: {type: NodePort}`},
			{spec: `{service: {type: LoadBalancer, annotations: null, sessionAffinity: null, internalTrafficPolicy: Local, trafficDistribution: PreferSameZone, ports: [{name: http, port: 80}]}}`,
				seen: `{metadata: {annotations: {own: common}}, spec: {type: LoadBalancer, sessionAffinity: None, externalTrafficPolicy: Local, internalTrafficPolicy: Local, trafficDistribution: PreferSameZone,
				ports: [{name: http, port: 80, targetPort: http}, {name: admin, port: 9090}]}}`},
			{spec: `{service: {type: NodePort, internalTrafficPolicy: null, trafficDistribution: null, ports: null, extraPorts: [{name: side, port: 80, targetPort: 7}, {name: udp, port: 80, protocol: UDP}]}}`,
				seen: `spec: {type: NodePort, externalTrafficPolicy: Local, healthCheckNodePort: null, internalTrafficPolicy: Cluster, trafficDistribution: null,
				ports: [{name: http, port: 8080}, {name: admin, port: 9090}, {name: side, port: 80, targetPort: 7, protocol: TCP}, {name: udp, port: 80, targetPort: 80, protocol: UDP}]}`},
			{spec: `{service: {type: ClusterIP, externalTrafficPolicy: null, extraPorts: null}}`,
				seen: `spec: {type: ClusterIP, externalTrafficPolicy: null, ports: [{name: http, port: 8080, nodePort: null}, {name: admin, port: 9090}]}`},
			{spec: `{service: {type: LoadBalancer}}`, seen: `spec: {type: LoadBalancer, externalTrafficPolicy: Cluster, ports: [{name: http}, {name: admin}]}`},
			{spec: `{service: null}`, seen: `spec: {type: ClusterIP, externalTrafficPolicy: null, allocateLoadBalancerNodePorts: null, ports: [{nodePort: null}, {nodePort: null}]}`},
			{spec: `{service: {mode: None}}`},
		}},
		{core("ServiceAccount"), "serviceaccounts", "robot", []step{
			{spec: `{serviceAccount: {create: true}}`, seen: `metadata: {annotations: {own: common}}`},
			{seen: `metadata: {}`},
			{spec: `{serviceAccount: {name: cyborg, annotations: {own: "2"}, automount: false}}`, child: "cyborg", seen: own, also: accountIsGone("robot")},
			{spec: `{serviceAccount: {create: null, annotations: null}}`, child: "cyborg", seen: `metadata: {}`, applies: none},
			{spec: `{serviceAccount: null}`, child: "cyborg"},
		}},
		{gateway("HTTPRoute"), "httproutes", "webbed", []step{
			{spec: `{httpRoute: {parentRefs: [{name: public}]}}`, seen: `{metadata: {annotations: {own: common}}, spec: {hostnames: null, parentRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: public, namespace: null}],
				rules: [{matches: [{path: {type: PathPrefix, value: /}}], backendRefs: [{kind: Service, name: webbed, port: 8080, weight: 1}]}]}}`},
			{seen: `spec: {parentRefs: [{name: public}]}`},
			{spec: `{httpRoute: {annotations: {own: "2"}, parentRefs: [{name: public, namespace: infra, sectionName: https}], hostnames: [b.example.com, a.example.com],
				rules: [{port: admin, matches: [{path: /x, pathType: Exact, method: GET, headers: [{name: X-A, value: "1"}]}]}, {port: http}]}}`,
				seen: `{` + own + `, spec: {hostnames: [b.example.com, a.example.com], parentRefs: [{name: public, namespace: infra, sectionName: https}],
				rules: [{matches: [{path: {type: Exact, value: /x}, method: GET, headers: [{name: X-A, value: "1", type: Exact}]}], backendRefs: [{port: 9090}]}, {backendRefs: [{port: 8080}]}]}}`},
			{spec: `{httpRoute: {hostnames: [a.example.com, b.example.com], rules: [{port: http, matches: [{path: /x}, {method: POST}]}]}}`,
				seen: `spec: {hostnames: [a.example.com, b.example.com], rules: [{matches: [{path: {type: PathPrefix, value: /x}, method: null, headers: null}, {path: {type: PathPrefix, value: /}, method: POST}], backendRefs: [{port: 8080}]}]}`},
			{spec: `{httpRoute: {annotations: null, hostnames: null, rules: null, parentRefs: [{name: public}]}}`,
				seen: `{metadata: {annotations: {own: common}}, spec: {hostnames: null, parentRefs: [{name: public, namespace: null, sectionName: null}], rules: [{matches: [{path: {type: PathPrefix, value: /}}]}]}}`},
			{spec: `{httpRoute: null}`},
		}},
	}
}

func kindOf(group, version string) func(string) schema.GroupVersionKind {
	return schema.GroupVersion{Group: group, Version: version}.WithKind
}

var (
	core        = kindOf("", "v1")
	autoscaling = kindOf("autoscaling", "v2")
	policy      = kindOf("policy", "v1")
	networking  = kindOf("networking.k8s.io", "v1")
	gateway     = kindOf(gatewayv1.GroupName, "v1")
)

func accountIsGone(name string) func(Gomega, context.Context, string) {
	return func(g Gomega, ctx context.Context, ns string) {
		err := admin.Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, &corev1.ServiceAccount{})
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
	}
}

// installGatewayAPI installs the CustomResourceDefinition of HTTPRoute from the module that the operator is built with.
func installGatewayAPI() {
	GinkgoHelper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	Expect(err).NotTo(HaveOccurred())
	kubectl("apply", "--server-side", "-f", filepath.Join(strings.TrimSpace(string(dir)), "config", "crd", "standard", "gateway.networking.k8s.io_httproutes.yaml"))
}

// eventuallyRouted waits for an App's HTTPRoute. It wakes the operator, which would look again in a minute.
func eventuallyRouted(ctx context.Context, a *quellv1alpha1.App) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		touch(ctx, a)
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(a), &gatewayv1.HTTPRoute{})).To(Succeed())
	}).WithPolling(time.Second).Should(Succeed())
}

// revoke takes the operator's rights to a resource away.
func revoke(ctx context.Context, group, resource string) {
	GinkgoHelper()
	change(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "quell-manager"}}, func(role *rbacv1.ClusterRole) {
		role.Rules = slices.DeleteFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
			return slices.Equal(rule.APIGroups, []string{group}) && slices.Equal(rule.Resources, []string{resource})
		})
	})
	Eventually(ctx, func() bool { return mayRead(ctx, group, resource) }).Should(BeFalse())
}

// acceptRoute does what the controller of a Gateway does.
func acceptRoute(ctx context.Context, a *quellv1alpha1.App) {
	GinkgoHelper()
	route := &gatewayv1.HTTPRoute{}
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(a), route)).To(Succeed())
	parent := gatewayv1.RouteParentStatus{ParentRef: route.Spec.ParentRefs[0], ControllerName: "example.com/gateway"}
	for _, kind := range []string{"Accepted", "ResolvedRefs"} {
		meta.SetStatusCondition(&parent.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind, ObservedGeneration: route.Generation})
	}
	route.Status.Parents = []gatewayv1.RouteParentStatus{parent}
	Expect(admin.Status().Update(ctx, route)).To(Succeed())
}

var _ = Describe("A Service whose cluster IP would have to change", func() {
	It("is left as it is until a person deletes it, without a hot retry", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		a := createReady(ctx, newApp(ns, "shop"))
		before := service(ctx, Default, a)
		for _, c := range []struct {
			mode     quellv1alpha1.ServiceMode
			says     string
			headless bool
		}{
			{quellv1alpha1.ServiceHeadless, "made anew without one", true},
			{quellv1alpha1.ServiceAuto, "made anew with one", false},
		} {
			change(ctx, a, func(a *quellv1alpha1.App) { a.Spec.Service = &quellv1alpha1.AppService{Mode: c.mode} })
			message := eventuallyCondition(ctx, a, quellv1alpha1.ConditionStalled, "Rejected")
			Expect(message).To(And(ContainSubstring(`Service "shop" was rejected`), ContainSubstring("kubectl delete -n "+ns+" service shop"), ContainSubstring(c.says)))
			awaitIdle(ctx)
			rest := mark()
			touch(ctx, a)
			awaitIdle(ctx)
			Expect(localcluster.Summary(manager.writes(rest, ns))).To(Equal(localcluster.Summary(nil)))
			Expect(status(ctx, Default, a).Conditions).To(ContainElement(HaveField("Message", message)))
			Expect(service(ctx, Default, a).UID).To(Equal(before.UID))

			Expect(admin.Delete(ctx, before)).To(Succeed())
			converge(ctx, a)
			before = service(ctx, Default, a)
			headless := before.Spec.ClusterIP == corev1.ClusterIPNone
			Expect(headless).To(Equal(c.headless))
		}
	})
})

var _ = Describe("A ServiceAccount that exists already", func() {
	It("is used and never touched", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		theirs := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "theirs"}}
		Expect(admin.Create(ctx, theirs)).To(Succeed())
		start, version := mark(), theirs.ResourceVersion
		a := createReady(ctx, newApp(ns, "shop", func(s *quellv1alpha1.AppSpec) {
			s.ServiceAccount = &quellv1alpha1.AppServiceAccount{Name: "theirs"}
		}))
		Expect(deployment(ctx, Default, a).Spec.Template.Spec.ServiceAccountName).To(Equal("theirs"))
		change(ctx, a, func(a *quellv1alpha1.App) { a.Spec.ServiceAccount = nil })
		converge(ctx, a)
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(theirs), theirs)).To(Succeed())
		Expect(theirs.ResourceVersion).To(Equal(version))
		Expect(count(manager.requests(start), to("serviceaccounts"))).To(BeZero())
	})
})
