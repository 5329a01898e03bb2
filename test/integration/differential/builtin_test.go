package differential_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/applyconfigurations"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	autoscalingv2ac "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayapply "sigs.k8s.io/gateway-api/applyconfiguration"
	gatewayv1ac "sigs.k8s.io/gateway-api/applyconfiguration/apis/v1"
	"sigs.k8s.io/yaml"
)

const objectsPerBuiltin = 6

// builtin is a kind of children with its typed apply configurations.
type builtin struct {
	gvk   schema.GroupVersionKind
	live  func() client.Object
	draw  func(r *rand.Rand, name string) any
	noise func(r *rand.Rand) content
}

var builtins = []builtin{
	{appsv1.SchemeGroupVersion.WithKind("Deployment"), made[appsv1.Deployment], drawDeployment, func(r *rand.Rand) content {
		return content{"status": content{"replicas": r.IntN(3), "observedGeneration": r.IntN(9)}}
	}},
	{corev1.SchemeGroupVersion.WithKind("Service"), made[corev1.Service], drawService, loadBalanced},
	{autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"), made[autoscalingv2.HorizontalPodAutoscaler], drawAutoscaler, func(r *rand.Rand) content {
		return content{"status": content{"desiredReplicas": r.IntN(3), "currentReplicas": r.IntN(3)}}
	}},
	{policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), made[policyv1.PodDisruptionBudget], drawBudget, func(r *rand.Rand) content {
		return content{"status": content{"currentHealthy": r.IntN(3), "desiredHealthy": 1, "disruptionsAllowed": 0, "expectedPods": 1}}
	}},
	{networkingv1.SchemeGroupVersion.WithKind("Ingress"), made[networkingv1.Ingress], drawIngress, loadBalanced},
	{networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"), made[networkingv1.NetworkPolicy], drawPolicy, nil},
	{corev1.SchemeGroupVersion.WithKind("ServiceAccount"), made[corev1.ServiceAccount], drawAccount, nil},
	{corev1.SchemeGroupVersion.WithKind("ConfigMap"), made[corev1.ConfigMap], drawConfig, nil},
	{schema.GroupVersion(gatewayv1.GroupVersion).WithKind("HTTPRoute"), made[gatewayv1.HTTPRoute], drawRoute, nil},
}

func made[T any, P interface {
	*T
	client.Object
}]() client.Object {
	return P(new(T))
}

func loadBalanced(r *rand.Rand) content {
	return content{"status": content{"loadBalancer": content{"ingress": []any{content{"ip": fmt.Sprintf("192.0.2.%d", r.IntN(3))}}}}}
}

// some picks one of several values.
func some[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// maybe calls one of several builders, or none.
func maybe(r *rand.Rand, builders ...func()) {
	for _, build := range builders {
		if r.IntN(2) == 0 {
			build()
		}
	}
}

func someLabels(r *rand.Rand) map[string]string {
	return map[string]string{"app": some(r, "a", "b"), "tier": some(r, "", "web")}
}

func drawDeployment(r *rand.Rand, name string) any {
	labels := map[string]string{"app": name}
	pod := corev1ac.PodSpec()
	for _, i := range r.Perm(3)[:1+r.IntN(2)] {
		pod.WithContainers(drawContainer(r, fmt.Sprintf("c%d", i)))
	}
	maybe(r,
		func() {
			pod.WithInitContainers(drawContainer(r, "init").WithRestartPolicy(corev1.ContainerRestartPolicyAlways))
		},
		func() { pod.WithServiceAccountName(some(r, "default", "other")) },
		func() { pod.WithTerminationGracePeriodSeconds(some[int64](r, 0, 30, 60)) },
		func() { pod.WithHostNetwork(some(r, false, false, true)) },
		func() { pod.WithImagePullSecrets(corev1ac.LocalObjectReference().WithName(some(r, "x", "y"))) },
		func() { pod.WithSecurityContext(drawPodSecurity(r)) },
		func() { pod.WithVolumes(drawVolumes(r)...) },
		func() {
			pod.WithTolerations(corev1ac.Toleration().WithKey(some(r, "a", "b")).WithOperator(some(r, corev1.TolerationOpExists, corev1.TolerationOpEqual)))
		},
		func() {
			pod.WithTopologySpreadConstraints(corev1ac.TopologySpreadConstraint().WithMaxSkew(some[int32](r, 1, 2)).
				WithTopologyKey("zone").WithWhenUnsatisfiable(some(r, corev1.DoNotSchedule, corev1.ScheduleAnyway)).
				WithLabelSelector(metav1ac.LabelSelector().WithMatchLabels(labels)))
		},
		func() { pod.WithNodeSelector(map[string]string{"disk": some(r, "", "ssd")}) },
	)
	template := corev1ac.PodTemplateSpec().WithLabels(labels).WithSpec(pod)
	if r.IntN(3) == 0 {
		template.WithAnnotations(map[string]string{"note": some(r, "", "1")})
	}
	spec := appsv1ac.DeploymentSpec().WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels)).WithTemplate(template)
	maybe(r,
		func() { spec.WithReplicas(some[int32](r, 0, 1, 2)) },
		func() { spec.WithMinReadySeconds(some[int32](r, 0, 5)) },
		func() { spec.WithPaused(some(r, true, false)) },
		func() { spec.WithRevisionHistoryLimit(some[int32](r, 0, 10)) },
		func() { spec.WithStrategy(drawStrategy(r)) },
	)
	return appsv1ac.Deployment(name, namespace).WithLabels(someLabels(r)).WithSpec(spec)
}

func drawStrategy(r *rand.Rand) *appsv1ac.DeploymentStrategyApplyConfiguration {
	s := appsv1ac.DeploymentStrategy().WithType(appsv1.RollingUpdateDeploymentStrategyType)
	if r.IntN(3) == 0 {
		return s.WithType(appsv1.RecreateDeploymentStrategyType)
	}
	if r.IntN(2) == 0 {
		s.WithRollingUpdate(appsv1ac.RollingUpdateDeployment().WithMaxSurge(some(r, intstr.FromInt32(1), intstr.FromString("25%"))).
			WithMaxUnavailable(some(r, intstr.FromInt32(0), intstr.FromString("25%"))))
	}
	return s
}

func drawContainer(r *rand.Rand, name string) *corev1ac.ContainerApplyConfiguration {
	c := corev1ac.Container().WithName(name).WithImage(some(r, "nginx", "nginx:1", "nginx:latest"))
	quantities := func() corev1.ResourceList {
		return corev1.ResourceList{
			corev1.ResourceCPU:    some(r, resource.MustParse("1000m"), resource.MustParse("1"), resource.MustParse("0.5")),
			corev1.ResourceMemory: some(r, resource.MustParse("1024Mi"), resource.MustParse("1Gi")),
		}
	}
	maybe(r,
		func() { c.WithCommand(some(r, "", "run")).WithArgs("a", some(r, "b", "")) },
		func() { c.WithStdin(some(r, true, false)) },
		func() { c.WithImagePullPolicy(some(r, corev1.PullAlways, corev1.PullIfNotPresent)) },
		func() {
			for _, i := range r.Perm(3)[:1+r.IntN(2)] {
				c.WithEnv(corev1ac.EnvVar().WithName(fmt.Sprintf("E%d", i)).WithValue(some(r, "", "1")))
			}
		},
		func() {
			c.WithEnv(corev1ac.EnvVar().WithName("REF").WithValueFrom(corev1ac.EnvVarSource().
				WithFieldRef(corev1ac.ObjectFieldSelector().WithFieldPath("metadata.name"))))
		},
		func() {
			for _, i := range r.Perm(3)[:1+r.IntN(2)] {
				p := corev1ac.ContainerPort().WithContainerPort(int32(80 + i))
				maybe(r, func() { p.WithProtocol(corev1.ProtocolTCP) }, func() { p.WithName(fmt.Sprintf("p%d", i)) })
				c.WithPorts(p)
			}
		},
		func() { c.WithResources(corev1ac.ResourceRequirements().WithRequests(quantities())) },
		func() { c.WithReadinessProbe(drawProbe(r)) },
		func() { c.WithStartupProbe(drawProbe(r)) },
		func() {
			c.WithSecurityContext(corev1ac.SecurityContext().WithRunAsNonRoot(true).WithPrivileged(false).
				WithCapabilities(corev1ac.Capabilities().WithDrop("ALL")))
		},
		func() { c.WithTerminationMessagePath(some(r, "/dev/termination-log", "/x")) },
	)
	return c
}

func drawProbe(r *rand.Rand) *corev1ac.ProbeApplyConfiguration {
	p := corev1ac.Probe()
	if r.IntN(2) == 0 {
		p.WithTCPSocket(corev1ac.TCPSocketAction().WithPort(some(r, intstr.FromInt32(80), intstr.FromString("http"))))
	} else {
		p.WithHTTPGet(corev1ac.HTTPGetAction().WithPath(some(r, "", "/", "/healthz")).WithPort(intstr.FromInt32(80)))
	}
	maybe(r, func() { p.WithPeriodSeconds(some[int32](r, 0, 10, 20)) }, func() { p.WithInitialDelaySeconds(some[int32](r, 0, 5)) })
	return p
}

func drawPodSecurity(r *rand.Rand) *corev1ac.PodSecurityContextApplyConfiguration {
	s := corev1ac.PodSecurityContext()
	maybe(r,
		func() { s.WithRunAsUser(some[int64](r, 0, 1000)) },
		func() { s.WithSupplementalGroups(some[int64](r, 1, 2), 3) },
		func() {
			s.WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
		},
	)
	return s
}

func drawVolumes(r *rand.Rand) []*corev1ac.VolumeApplyConfiguration {
	empty := corev1ac.EmptyDirVolumeSource()
	if r.IntN(2) == 0 {
		empty.WithSizeLimit(some(r, resource.MustParse("1Gi"), resource.MustParse("1024Mi")))
	}
	all := []*corev1ac.VolumeApplyConfiguration{
		corev1ac.Volume().WithName("tmp").WithEmptyDir(empty),
		corev1ac.Volume().WithName("config").WithConfigMap(corev1ac.ConfigMapVolumeSource().WithName("c")),
		corev1ac.Volume().WithName("secret").WithSecret(corev1ac.SecretVolumeSource().WithSecretName("s")),
		corev1ac.Volume().WithName("token").WithProjected(corev1ac.ProjectedVolumeSource().WithSources(
			corev1ac.VolumeProjection().WithServiceAccountToken(corev1ac.ServiceAccountTokenProjection().WithPath("t")))),
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:1+r.IntN(3)]
}

func drawService(r *rand.Rand, name string) any {
	spec := corev1ac.ServiceSpec().WithSelector(map[string]string{"app": name})
	for _, i := range r.Perm(3)[:1+r.IntN(2)] {
		p := corev1ac.ServicePort().WithName(fmt.Sprintf("p%d", i)).WithPort(int32(80 + i))
		maybe(r,
			func() { p.WithProtocol(corev1.ProtocolTCP) },
			func() {
				p.WithTargetPort(some(r, intstr.FromInt32(int32(80+i)), intstr.FromInt32(8080), intstr.FromString("http")))
			},
			func() { p.WithAppProtocol(some(r, "", "http")) },
		)
		spec.WithPorts(p)
	}
	maybe(r,
		func() {
			spec.WithType(some(r, corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer))
		},
		func() { spec.WithSessionAffinity(some(r, corev1.ServiceAffinityNone, corev1.ServiceAffinityClientIP)) },
		func() { spec.WithPublishNotReadyAddresses(some(r, true, false)) },
		func() { spec.WithIPFamilyPolicy(corev1.IPFamilyPolicySingleStack) },
		func() {
			spec.WithInternalTrafficPolicy(some(r, corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal))
		},
	)
	return corev1ac.Service(name, namespace).WithLabels(someLabels(r)).WithSpec(spec)
}

func drawAutoscaler(r *rand.Rand, name string) any {
	spec := autoscalingv2ac.HorizontalPodAutoscalerSpec().WithMaxReplicas(some[int32](r, 3, 5)).WithScaleTargetRef(
		autoscalingv2ac.CrossVersionObjectReference().WithAPIVersion("apps/v1").WithKind("Deployment").WithName(name))
	for _, name := range some(r, []corev1.ResourceName{"cpu"}, []corev1.ResourceName{"memory", "cpu"}, nil) {
		spec.WithMetrics(autoscalingv2ac.MetricSpec().WithType(autoscalingv2.ResourceMetricSourceType).WithResource(
			autoscalingv2ac.ResourceMetricSource().WithName(name).WithTarget(
				autoscalingv2ac.MetricTarget().WithType(autoscalingv2.UtilizationMetricType).WithAverageUtilization(some[int32](r, 50, 80)))))
	}
	maybe(r,
		func() { spec.WithMinReplicas(some[int32](r, 1, 2)) },
		func() {
			spec.WithBehavior(autoscalingv2ac.HorizontalPodAutoscalerBehavior().WithScaleDown(
				autoscalingv2ac.HPAScalingRules().WithStabilizationWindowSeconds(some[int32](r, 0, 300))))
		},
	)
	return autoscalingv2ac.HorizontalPodAutoscaler(name, namespace).WithLabels(someLabels(r)).WithSpec(spec)
}

func drawBudget(r *rand.Rand, name string) any {
	spec := policyv1ac.PodDisruptionBudgetSpec().WithSelector(metav1ac.LabelSelector().WithMatchLabels(map[string]string{"app": name}))
	if r.IntN(2) == 0 {
		spec.WithMinAvailable(some(r, intstr.FromInt32(0), intstr.FromInt32(1), intstr.FromString("50%")))
	} else {
		spec.WithMaxUnavailable(some(r, intstr.FromInt32(0), intstr.FromInt32(1), intstr.FromString("50%")))
	}
	if r.IntN(2) == 0 {
		spec.WithUnhealthyPodEvictionPolicy(some(r, policyv1.AlwaysAllow, policyv1.IfHealthyBudget))
	}
	return policyv1ac.PodDisruptionBudget(name, namespace).WithLabels(someLabels(r)).WithSpec(spec)
}

func drawIngress(r *rand.Rand, name string) any {
	backend := func() *networkingv1ac.IngressBackendApplyConfiguration {
		return networkingv1ac.IngressBackend().WithService(networkingv1ac.IngressServiceBackend().WithName(name).WithPort(
			some(r, networkingv1ac.ServiceBackendPort().WithNumber(80), networkingv1ac.ServiceBackendPort().WithName("http"))))
	}
	spec := networkingv1ac.IngressSpec()
	for _, i := range r.Perm(3)[:1+r.IntN(2)] {
		spec.WithRules(networkingv1ac.IngressRule().WithHost(some(r, "", fmt.Sprintf("h%d.example", i))).WithHTTP(networkingv1ac.HTTPIngressRuleValue().
			WithPaths(networkingv1ac.HTTPIngressPath().WithPath("/").WithPathType(some(r, networkingv1.PathTypePrefix, networkingv1.PathTypeExact)).WithBackend(backend()))))
	}
	maybe(r,
		func() { spec.WithIngressClassName(some(r, "a", "b")) },
		func() {
			spec.WithTLS(networkingv1ac.IngressTLS().WithHosts("h0.example").WithSecretName(some(r, "", "tls")))
		},
		func() { spec.WithDefaultBackend(backend()) },
	)
	return networkingv1ac.Ingress(name, namespace).WithLabels(someLabels(r)).WithSpec(spec)
}

func drawPolicy(r *rand.Rand, name string) any {
	spec := networkingv1ac.NetworkPolicySpec().WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(map[string]string{"app": name}))
	maybe(r,
		func() { spec.WithPolicyTypes(some(r, networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress)) },
		func() {
			p := networkingv1ac.NetworkPolicyPort().WithPort(some(r, intstr.FromInt32(80), intstr.FromString("http")))
			maybe(r, func() { p.WithProtocol(corev1.ProtocolTCP) })
			spec.WithIngress(networkingv1ac.NetworkPolicyIngressRule().WithPorts(p))
		},
		func() { spec.WithIngress(networkingv1ac.NetworkPolicyIngressRule()) },
		func() {
			spec.WithEgress(networkingv1ac.NetworkPolicyEgressRule().WithTo(networkingv1ac.NetworkPolicyPeer().
				WithNamespaceSelector(metav1ac.LabelSelector())))
		},
	)
	return networkingv1ac.NetworkPolicy(name, namespace).WithLabels(someLabels(r)).WithSpec(spec)
}

func drawAccount(r *rand.Rand, name string) any {
	a := corev1ac.ServiceAccount(name, namespace).WithLabels(someLabels(r))
	maybe(r,
		func() { a.WithAutomountServiceAccountToken(some(r, true, false)) },
		func() { a.WithImagePullSecrets(corev1ac.LocalObjectReference().WithName(some(r, "x", "y"))) },
		func() { a.WithSecrets(corev1ac.ObjectReference().WithName(some(r, "x", "y"))) },
		func() { a.WithAnnotations(map[string]string{"role": some(r, "", "arn")}) },
	)
	return a
}

func drawConfig(r *rand.Rand, name string) any {
	c := corev1ac.ConfigMap(name, namespace).WithLabels(someLabels(r))
	maybe(r,
		func() { c.WithData(map[string]string{"a": some(r, "", "1"), "b.c": some(r, "x\n", "")}) },
		func() { c.WithBinaryData(map[string][]byte{"bin": []byte(some(r, "", "\x00\x01"))}) },
		func() { c.WithData(map[string]string{}) },
	)
	return c
}

func drawRoute(r *rand.Rand, name string) any {
	parent := gatewayv1ac.ParentReference().WithName("gateway")
	maybe(r, func() { parent.WithNamespace(namespace) }, func() { parent.WithSectionName("web") })
	spec := gatewayv1ac.HTTPRouteSpec().WithParentRefs(parent)
	backend := func() *gatewayv1ac.HTTPBackendRefApplyConfiguration {
		b := gatewayv1ac.HTTPBackendRef().WithName(gatewayv1.ObjectName(name)).WithPort(some[gatewayv1.PortNumber](r, 80, 81))
		maybe(r, func() { b.WithWeight(some[int32](r, 0, 1, 2)) }, func() { b.WithKind("Service") })
		return b
	}
	for range 1 + r.IntN(2) {
		rule := gatewayv1ac.HTTPRouteRule().WithBackendRefs(backend())
		maybe(r, func() {
			rule.WithMatches(gatewayv1ac.HTTPRouteMatch().WithPath(gatewayv1ac.HTTPPathMatch().
				WithType(gatewayv1.PathMatchPathPrefix).WithValue(some(r, "/", "/a"))))
		}, func() { rule.WithMatches(gatewayv1ac.HTTPRouteMatch().WithMethod(gatewayv1.HTTPMethodGet)) })
		spec.WithRules(rule)
	}
	maybe(r, func() { spec.WithHostnames(some[gatewayv1.Hostname](r, "a.example", "b.example")) })
	return gatewayv1ac.HTTPRoute(name, namespace).WithLabels(someLabels(r)).WithSpec(spec)
}

func (b builtin) kind() *kind {
	types := applyconfigurations.NewTypeConverter(scheme)
	if b.gvk.Group == gatewayv1.GroupName {
		types = gatewayapply.NewTypeConverter(scheme)
	}
	return &kind{
		GroupKind: b.gvk.GroupKind(), versions: []string{b.gvk.Version}, types: types, noise: b.noise, live: b.live,
		told: func() string { return "built in" },
		parts: func(r *rand.Rand, name string) content {
			c := decoded(b.draw(r, name))
			delete(c, "apiVersion")
			delete(c, "kind")
			metadata := c["metadata"].(content)
			delete(metadata, "name")
			delete(metadata, "namespace")
			for field, value := range someMetadata(r) {
				metadata[field] = value
			}
			return c
		},
	}
}

// installRoutes installs HTTPRoute from the module whose apply configurations are used.
func installRoutes(ctx context.Context) {
	GinkgoHelper()
	dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	Expect(err).NotTo(HaveOccurred())
	raw, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "config", "crd", "standard", "gateway.networking.k8s.io_httproutes.yaml"))
	Expect(err).NotTo(HaveOccurred())
	crd := &apiextensionsv1.CustomResourceDefinition{}
	Expect(yaml.Unmarshal(raw, crd)).To(Succeed())
	install(ctx, crd)
}

var _ = Describe("kinds that an operator has as children", func() {
	It("are not written to when a real apply would change nothing, and only then", func(ctx SpecContext) {
		tally.reset()
		seed := fromEnvironment("QUELL_SEED", 12)
		steps := fromEnvironment("QUELL_STEPS", 400)
		GinkgoWriter.Printf("QUELL_SEED=%d QUELL_STEPS=%d\n", seed, steps)
		installRoutes(ctx)
		var objects []*object
		for _, b := range builtins {
			k := b.kind()
			Expect(k.keep()).To(Succeed())
			for n := range objectsPerBuiltin {
				objects = append(objects, newObject(k, fmt.Sprintf("%s-%d", strings.ToLower(k.Kind), n), uint64(seed)))
			}
		}
		tally.add("schemas", "built-in kinds and HTTPRoute", len(builtins))
		tally.add("objects", "children", len(objects))
		run(ctx, objects, steps, func(context.Context) {})
		conclude(seed)
	}, NodeTimeout(2*time.Hour))
})
