package app_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/test/localcluster"
)

// trouble is a rollout that makes no progress.
type trouble struct {
	spec []func(*quellv1alpha1.AppSpec)
	// kubelet is what the kubelet says of the App's container in its n-th look; nil leaves the Pods to the cluster's own.
	kubelet func(n int32) corev1.ContainerStatus
	// note of an event that the kubelet records about the Pod.
	note string
	// condition that says why, with its reason and its message.
	condition, reason, message string
}

var _ = Describe("A rollout that makes no progress", func() {
	It("tells why, in words that stand still while the Pods' own move, and reads little", func(ctx SpecContext) {
		quotaFull, restricted := fullNamespace(ctx), restrictedNamespace(ctx)
		ns, start := newNamespace(ctx), mark()
		apps, all := map[string]*quellv1alpha1.App{}, troubles()
		for name, t := range all {
			namespace := ns
			switch name {
			case "quota":
				namespace = quotaFull
			case "pod-security":
				namespace = restricted
			}
			apps[name] = create(ctx, newApp(namespace, name, append([]func(*quellv1alpha1.AppSpec){minimal}, t.spec...)...))
		}
		healthy := createReady(ctx, newApp(ns, "healthy", minimal))
		sayAll(ctx, ns, all, 0)
		for name, t := range all {
			By(name)
			Expect(eventuallyCondition(ctx, apps[name], t.condition, t.reason)).To(Equal(t.message), name)
			progress := meta.FindStatusCondition(apps[name].Status.Conditions, quellv1alpha1.ConditionProgressing)
			Expect(progress.Message).To(Equal(t.message))
			if t.condition == quellv1alpha1.ConditionReconciling {
				Expect(progress.Status).To(Equal(metav1.ConditionTrue))
			} else {
				Expect(progress.Status).To(Equal(metav1.ConditionFalse))
			}
		}

		By("moving what has no meaning, with an operator that begins anew and so looks at once")
		before, since := versionsOf(ctx, apps), mark()
		n := int32(0)
		manager.restart()
		Consistently(ctx, func() map[string]string {
			n++
			sayAll(ctx, ns, all, n)
			return versionsOf(ctx, apps)
		}, 5*time.Second, 500*time.Millisecond).Should(Equal(before))
		read := func(r localcluster.Request) bool { return to("pods")(r) && r.Namespace == ns }
		Expect(count(manager.requests(since), read)).To(BeNumerically(">=", len(all)-2))
		Expect(count(manager.requests(since), read)).To(BeNumerically("<=", 3*len(all)))

		By("being mended")
		change(ctx, apps["image"], func(a *quellv1alpha1.App) { a.Spec.PodTemplate = nil })
		converge(ctx, apps["image"])
		Expect(meta.FindStatusCondition(apps["image"].Status.Conditions, quellv1alpha1.ConditionReconciling)).To(BeNil())
		Expect(meta.FindStatusCondition(apps["image"].Status.Conditions, quellv1alpha1.ConditionStalled)).To(BeNil())
		Expect(isReady(healthy)).To(BeTrue())
		Expect(eventsOf(ctx, Default, apps["image"], "ImagePullFailed")).To(HaveLen(1))
		Expect(count(manager.requests(start), func(r localcluster.Request) bool { return r.Verb == "watch" && r.Resource == "pods" })).To(BeZero())
	})

	It("is not looked into when there is no trouble", func(ctx SpecContext) {
		ns, start := newNamespace(ctx), mark()
		createReady(ctx, newApp(ns, "shop", replicas(3)))
		awaitIdle(ctx)
		Expect(manager.requests(start, func(r localcluster.Request) bool {
			return r.Namespace == ns && (r.Resource == "pods" || r.Resource == "replicasets")
		})).To(BeEmpty())
	})
})

// troubles are by the name of their App.
func troubles() map[string]trouble {
	waits := func(reasons ...string) func(int32) corev1.ContainerStatus {
		return func(n int32) corev1.ContainerStatus {
			return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
				Reason: reasons[int(n)%len(reasons)], Message: fmt.Sprintf("attempt %d of Pod shop-%d", n, n),
			}}}
		}
	}
	said := func(reason, message string) func(int32) corev1.ContainerStatus {
		return func(n int32) corev1.ContainerStatus {
			return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
				Reason: reason, Message: fmt.Sprintf(message, n),
			}}}
		}
	}
	const (
		reconciling, stalled = quellv1alpha1.ConditionReconciling, quellv1alpha1.ConditionStalled
		late                 = "no progress within the deadline: "
		pull                 = `image "` + image + `" of container "app" cannot be pulled: correct it, or name a Secret with the registry's credentials in spec.imagePullSecrets`
		again                = `container "app" ends again and again%s; its log says why (kubectl logs --previous)`
		root                 = "its image runs as root, which spec.defaults.security forbids: set spec.podSecurityContext.runAsUser to another user's number, or spec.defaults.security to None"
	)
	type spec = []func(*quellv1alpha1.AppSpec)
	return map[string]trouble{
		"image":         {spec{unattended, impatient}, waits("ErrImagePull", "ImagePullBackOff"), "", stalled, "ImagePullFailed", late + pull},
		"image-slow":    {spec{unattended}, waits("ImagePullBackOff", "ErrImagePull"), "", reconciling, "ImagePullFailed", pull},
		"crash":         {spec{unattended}, crashes(1, "Error"), "", reconciling, "CrashLoopBackOff", fmt.Sprintf(again, ", with exit code 1")},
		"memory":        {spec{unattended, impatient}, crashes(137, "OOMKilled"), "", stalled, "CrashLoopBackOff", late + fmt.Sprintf(again, ": it needs more memory than resources.limits.memory allows (OOMKilled)")},
		"root":          {spec{unattended}, said("CreateContainerConfigError", `container has runAsNonRoot and image will run as root (pod: "root-%d_team(uid)", container: app)`), "", reconciling, "CreateContainerError", `container "app" cannot be made: ` + root},
		"config":        {spec{unattended, impatient}, said("CreateContainerConfigError", `configmap "settings" not found (attempt %d)`), "", stalled, "CreateContainerError", late + `container "app" cannot be made: ConfigMap "settings" does not exist`},
		"mount":         {spec{unattended}, waits("ContainerCreating"), `MountVolume.SetUp failed for volume "tls" : secret "tls" not found`, reconciling, "MountFailed", `a volume of the Pods cannot be mounted: Secret "tls" does not exist`},
		"readiness":     {spec{unattended, probed}, runs, "", reconciling, "ReadinessProbeFailing", `container "app" runs, but its readiness probe does not succeed`},
		"unschedulable": {spec{greedy, impatient}, nil, "", stalled, "Unschedulable", late + "no node takes the Pods: not enough cpu"},
		"selector":      {spec{picky}, nil, "", reconciling, "Unschedulable", "no node takes the Pods: labels that do not match spec.nodeSelector or spec.affinity"},
		"quota":         {nil, nil, "", reconciling, "QuotaExceeded", `the Pods do not fit into ResourceQuota "full": it has not enough pods left`},
		"pod-security": {spec{insecure, impatient}, nil, "", stalled, "PodsRefused", late + `the Pods are refused: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "app" must set securityContext.allowPrivilegeEscalation=false), ` +
			`unrestricted capabilities (container "app" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "app" must set securityContext.runAsNonRoot=true), ` +
			`seccompProfile (pod or container "app" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")`},
	}
}

// crashes is a container that waits, runs and has ended in turns, with ever more restarts.
func crashes(code int32, reason string) func(int32) corev1.ContainerStatus {
	return func(n int32) corev1.ContainerStatus {
		last := &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, FinishedAt: metav1.Now(), ContainerID: fmt.Sprintf("test://%d", n)}
		s := corev1.ContainerStatus{RestartCount: n + 1, LastTerminationState: corev1.ContainerState{Terminated: last}}
		switch n % 3 {
		case 0:
			s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: fmt.Sprintf("back-off %d0s", n)}
		case 1:
			s.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.Now()}
		default:
			s.State.Terminated = last
		}
		return s
	}
}

func runs(int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{Started: ptr.To(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}
}

func impatient(s *quellv1alpha1.AppSpec) { s.ProgressDeadlineSeconds = 1 }

func picky(s *quellv1alpha1.AppSpec) {
	s.NodeSelector = map[string]string{"example.com/no-node": "none"}
}

func greedy(s *quellv1alpha1.AppSpec) {
	s.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100k")}}
}

func probed(s *quellv1alpha1.AppSpec) {
	s.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8080)}}}
}

func insecure(s *quellv1alpha1.AppSpec) {
	s.Defaults = &quellv1alpha1.AppDefaults{Security: quellv1alpha1.SecurityNone}
}

// sayAll reports on the Pods of all Apps as a kubelet would in its n-th look at them.
func sayAll(ctx context.Context, namespace string, all map[string]trouble, n int32) {
	GinkgoHelper()
	for name, t := range all {
		if t.kubelet == nil {
			continue
		}
		pod := sayOf(ctx, namespace, name, t.kubelet(n))
		if t.note != "" {
			recordWarning(ctx, pod, fmt.Sprintf("%s-%d", name, n), t.note)
		}
	}
}

func sayOf(ctx context.Context, namespace, name string, s corev1.ContainerStatus) *corev1.Pod {
	GinkgoHelper()
	s.Name, s.Image = "app", image
	var list []corev1.Pod
	Eventually(ctx, func() []corev1.Pod {
		list = pods(ctx, namespace, map[string]string{"app.kubernetes.io/name": name})
		return list
	}).Should(HaveLen(1))
	pod := &list[0]
	Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{s}
		return admin.Status().Update(ctx, pod)
	})).To(Succeed())
	return pod
}

func recordWarning(ctx context.Context, pod *corev1.Pod, name, note string) {
	GinkgoHelper()
	now := metav1.Now()
	Expect(admin.Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: pod.Namespace, Name: name},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Type:           corev1.EventTypeWarning, Reason: "FailedMount", Message: note, FirstTimestamp: now, LastTimestamp: now, Count: 1,
		Source: corev1.EventSource{Component: "kubelet"},
	})).To(Succeed())
}

// fullNamespace has a quota that allows no Pod.
func fullNamespace(ctx context.Context) string {
	GinkgoHelper()
	ns := newNamespace(ctx)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "full"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
	}
	Expect(admin.Create(ctx, quota)).To(Succeed())
	Eventually(ctx, func(g Gomega) {
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(quota), quota)).To(Succeed())
		g.Expect(quota.Status.Hard).NotTo(BeEmpty())
	}).Should(Succeed())
	return ns
}

// restrictedNamespace has the Pod security standard restricted enforced.
func restrictedNamespace(ctx context.Context) string {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: newNamespace(ctx)}}
	change(ctx, ns, func(ns *corev1.Namespace) { ns.Labels["pod-security.kubernetes.io/enforce"] = "restricted" })
	return ns.Name
}

// versionsOf are the resourceVersions of Apps: whatever is written to one moves it.
func versionsOf(ctx context.Context, apps map[string]*quellv1alpha1.App) map[string]string {
	GinkgoHelper()
	found := map[string]string{}
	for name, a := range apps {
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(a), a)).To(Succeed())
		found[name] = a.ResourceVersion
	}
	return found
}

var _ = Describe("The status of an App", func() {
	It("tells of each child, of the image and where the App is reached", func(ctx SpecContext) {
		ns, start := newNamespace(ctx), mark()
		a := create(ctx, newApp(ns, "shop", replicas(2), everyChild))
		Expect(eventuallyCondition(ctx, a, quellv1alpha1.ConditionReconciling, "AddressPending")).To(Equal(
			`Service "shop" has no address from a load balancer yet; if the cluster has none, choose another spec.service.type`))
		expectRow(ctx, a, "Service", metav1.ConditionFalse, "AddressPending")
		Expect(meta.IsStatusConditionTrue(a.Status.Conditions, quellv1alpha1.ConditionAvailable)).To(BeTrue())

		s := service(ctx, Default, a)
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1", IPMode: ptr.To(corev1.LoadBalancerIPModeVIP)}}
		Expect(admin.Status().Update(ctx, s)).To(Succeed())
		converge(ctx, a)
		expectCost(manager.writes(start, ns), 8, 6)
		for kind, reason := range map[string]string{
			"Deployment": "RolledOut", "Service": "AddressAssigned", "Ingress": "Exists", "NetworkPolicy": "Exists", "ServiceAccount": "Exists", "PodDisruptionBudget": "Active",
		} {
			expectRow(ctx, a, kind, metav1.ConditionTrue, reason)
		}
		expectRow(ctx, a, "HorizontalPodAutoscaler", metav1.ConditionFalse, "FailedGetResourceMetric")
		Expect(a.Status.URL).To(Equal("http://192.0.2.1:8080"))
		Expect(a.Status.Endpoints).To(ConsistOf(
			quellv1alpha1.AppEndpoint{URI: "http://192.0.2.1:8080", Scope: quellv1alpha1.EndpointExternal},
			quellv1alpha1.AppEndpoint{URI: "http://shop." + ns + ".svc:8080", Scope: quellv1alpha1.EndpointInternal},
			quellv1alpha1.AppEndpoint{URI: "http://shop.example.org/", Scope: quellv1alpha1.EndpointExternal},
			quellv1alpha1.AppEndpoint{URI: "https://shop.example.com/", Scope: quellv1alpha1.EndpointExternal},
		))
		Expect(a.Status.OperatorVersion).To(Equal(operatorVersion))
		Expect(a.Status.Rendering).To(BeNumerically(">", 0))
		Expect([]string{a.Status.Image, a.Status.RolledOutImage}).To(Equal([]string{image, image}))
		Expect(a.Status.Revision).To(BeEquivalentTo(1))
	})

	It("tells the operator's version without a write for it alone", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		a := createReady(ctx, newApp(ns, "shop"))
		awaitIdle(ctx)
		start, before := mark(), a.ResourceVersion
		manager.stop()
		manager.version = "v0.0.1-test"
		DeferCleanup(func() {
			manager.stop()
			manager.version = operatorVersion
			manager.start()
		})
		manager.start()
		awaitIdle(ctx)
		touch(ctx, a)
		awaitIdle(ctx)
		Expect(manager.writes(start, ns)).To(BeEmpty())
		Expect(status(ctx, Default, a).OperatorVersion).To(Equal(operatorVersion))
		Expect(a.ResourceVersion).NotTo(Equal(before), "it was touched")

		change(ctx, a, func(a *quellv1alpha1.App) { a.Spec.Replicas = ptr.To[int32](2) })
		converge(ctx, a)
		Expect(status(ctx, Default, a).OperatorVersion).To(Equal("v0.0.1-test"))

		patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"operatorVersion":"v9"}}`))
		Expect(admin.Status().Patch(ctx, a, patch, client.FieldOwner("rival"))).To(Succeed())
		Eventually(ctx, func(g Gomega) { g.Expect(status(ctx, g, a).OperatorVersion).To(Equal("v0.0.1-test")) }).Should(Succeed())
	})

	It("tells the image that is rolled out until the next one is", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		a := createReady(ctx, newApp(ns, "shop", minimal))
		change(ctx, a, func(a *quellv1alpha1.App) {
			a.Spec.Image = image + "1"
			unattended(&a.Spec)
		})
		Eventually(ctx, func(g Gomega) { g.Expect(status(ctx, g, a).Revision).To(BeEquivalentTo(2)) }).Should(Succeed())
		Expect(a.Status.ObservedGeneration).To(Equal(a.Generation))
		Expect([]string{a.Status.Image, a.Status.RolledOutImage}).To(Equal([]string{image + "1", image}))
		change(ctx, a, attended)
		converge(ctx, a)
		Expect([]string{a.Status.Image, a.Status.RolledOutImage}).To(Equal([]string{image + "1", image + "1"}))
		Eventually(ctx, func(g Gomega) { g.Expect(status(ctx, g, a).Revision).To(BeEquivalentTo(3)) }).Should(Succeed())
	})
})

// everyChild asks for a child of each kind that every cluster has.
func everyChild(s *quellv1alpha1.AppSpec) {
	s.Service = &quellv1alpha1.AppService{Type: corev1.ServiceTypeLoadBalancer}
	s.Ingress = &quellv1alpha1.AppIngress{
		Hosts: []quellv1alpha1.AppIngressHost{{Host: "shop.example.com"}, {Host: "shop.example.org"}},
		TLS:   []quellv1alpha1.AppIngressTLS{{Hosts: []string{"shop.example.com"}, SecretName: "shop"}},
	}
	s.Autoscaling = &quellv1alpha1.AppAutoscaling{MinReplicas: 2, MaxReplicas: 4, CPUUtilization: 80}
	s.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}}
	s.PodDisruptionBudget = &quellv1alpha1.AppPodDisruptionBudget{MaxUnavailable: ptr.To(intstr.FromInt32(1))}
	s.ServiceAccount = &quellv1alpha1.AppServiceAccount{Create: ptr.To(true)}
	s.NetworkPolicy = &quellv1alpha1.AppNetworkPolicy{Ingress: &quellv1alpha1.AppNetworkIngress{}}
}

// expectRow waits for a child's row; its generation is one that the child has had.
func expectRow(ctx context.Context, a *quellv1alpha1.App, kind string, ready metav1.ConditionStatus, reason string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		rows := map[string]quellv1alpha1.AppChild{}
		for _, c := range status(ctx, g, a).Children {
			rows[c.Kind] = c
		}
		g.Expect(rows).To(HaveKey(kind))
		g.Expect(rows[kind].Name).To(Equal(a.Name))
		g.Expect(rows[kind].Ready).To(Equal(ready), "%+v", rows[kind])
		g.Expect(rows[kind].Reason).To(Equal(reason))
		if kind == "Deployment" {
			g.Expect(rows[kind].Generation).To(And(BeNumerically(">", 0), BeNumerically("<=", deployment(ctx, g, a).Generation)))
		}
	}).Should(Succeed())
}
