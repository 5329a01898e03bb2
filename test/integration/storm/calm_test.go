package storm_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/time/rate"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/storm"
	"github.com/hduolab/quell/controller/storm/live"
)

// heartbeat per second is what the fastest heartbeats in real clusters make, and a person with kubectl in a loop.
const heartbeat rate.Limit = 0.5

func calmSpecs() {
	var (
		s    *sentry
		log  *tail
		ns   string
		sent *atomic.Int64
		stop func()
		// beats counts the rounds of what goes on all the time.
		beats atomic.Int64
	)
	lease := schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"}

	BeforeAll(func(ctx SpecContext) {
		mark, err := cluster.Mark()
		Expect(err).NotTo(HaveOccurred())
		log = newTail(mark, storm.Options{})
		s = post(ctx, live.Selector{All: true, Kinds: []schema.GroupKind{lease, {Kind: "Event"}, {Group: "events.k8s.io", Kind: "Event"}}}, storm.Options{})
		ns = newNamespace(ctx)
		sent, stop = startOperator(ctx)
		createLease(ctx, ns)
		always(heartbeat, func(ctx context.Context, n int) {
			kubectlApply(ctx, ns, n)
			beats.Add(1)
		})
		always(heartbeat, func(ctx context.Context, n int) { beatNode(ctx, "node-0", n) })
		always(10, func(ctx context.Context, n int) { renewLease(ctx, ns, n) })
	})

	It("says nothing of a rollout", func(ctx SpecContext) {
		n := number("QUELL_DEPLOYMENTS", 40)
		started := time.Now()
		each(n, func(i int) {
			Expect(admin.Create(ctx, newDeployment(ns, fmt.Sprintf("web-%d", i), "registry.example.com/web:1"))).To(Succeed())
		})
		awaitRollout(ctx, ns, n)
		patch := client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"registry.example.com/web:2"}]}}}}`))
		each(n, func(i int) {
			Expect(admin.Patch(ctx, newDeployment(ns, fmt.Sprintf("web-%d", i), ""), patch)).To(Succeed())
		})
		awaitRollout(ctx, ns, n)
		AddReportEntry("rollout", fmt.Sprintf("%d Deployments created and changed in %s, alarms %v", n, time.Since(started).Round(time.Second), s.storms()))
		Expect(s.storms()).To(BeEmpty())
	})

	It("says nothing of many Apps that are created at once", func(ctx SpecContext) {
		n := number("QUELL_APPS", 60)
		started := time.Now()
		each(n, func(i int) { Expect(admin.Create(ctx, newApp(ns, fmt.Sprintf("app-%d", i)))).To(Succeed()) })
		Eventually(ctx, func(g Gomega) {
			var apps quellv1alpha1.AppList
			g.Expect(admin.List(ctx, &apps, client.InNamespace(ns))).To(Succeed())
			g.Expect(apps.Items).To(HaveLen(n))
			for _, a := range apps.Items {
				g.Expect(meta.IsStatusConditionTrue(a.Status.Conditions, quellv1alpha1.ConditionReady)).To(BeTrue(), a.Name)
			}
		}).WithTimeout(patienceFor(n)).WithPolling(time.Second).Should(Succeed())
		AddReportEntry("Apps", fmt.Sprintf("%d Apps Ready in %s, alarms %v", n, time.Since(started).Round(time.Second), s.storms()))
		Expect(s.storms()).To(BeEmpty())
	})

	It("says nothing of an autoscaler that moves", func(ctx SpecContext) {
		d := newDeployment(ns, "scaled", "registry.example.com/web:1")
		d.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
		Expect(admin.Create(ctx, d)).To(Succeed())
		Expect(admin.Create(ctx, newScaler(ns, "scaled", 2, 6))).To(Succeed())
		var load atomic.Int64
		load.Store(100)
		always(heartbeat, func(ctx context.Context, _ int) { measure(ctx, ns, "scaled", load.Load()) })
		for _, step := range []struct {
			load int64
			pods int32
		}{{200, 4}, {100, 2}, {300, 6}, {100, 2}} {
			load.Store(step.load)
			Eventually(ctx, func(g Gomega) {
				g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(d), d)).To(Succeed())
				g.Expect(*d.Spec.Replicas).To(Equal(step.pods))
			}).WithPolling(time.Second).Should(Succeed())
		}
		Expect(s.storms()).To(BeEmpty())
	})

	It("says nothing of heartbeats, leases and a person who applies real changes in a loop", func(ctx SpecContext) {
		key := storm.Key{GroupResource: schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, Namespace: ns, Name: "leader"}
		Eventually(ctx, func() storm.Verdict {
			f, _ := s.finding(key)
			return f.Verdict
		}).Should(Equal(storm.Heartbeat), "a lease that is renewed ten times a second is seen")
		Eventually(ctx, beats.Load).Should(BeNumerically(">=", 12), "more than the samples that a verdict takes")
		Expect(s.storms()).To(BeEmpty())
		for _, w := range s.source.Watches() {
			Expect(w).To(And(HaveField("State", live.Watching), HaveField("Gaps", 0)))
		}
	})

	It("is told so by the audit log too", func(ctx SpecContext) {
		report := log.read(ctx)
		for _, f := range report.Writes.Findings {
			Expect(f.IsStorm).To(BeFalse(), "%+v", f)
		}
		for _, f := range report.Findings {
			Expect(f.Key.Agent).To(Equal("admin"), "only this test itself asks again and again: %+v", f)
		}
	})

	It("counts the operator's requests as the operator does", func(ctx SpecContext) {
		stop() // which ends its watches: they are counted at their end
		Eventually(ctx, func(g Gomega) {
			counted := map[string]int64{}
			for _, c := range log.read(ctx).Agents {
				g.Expect(c.Error).To(BeZero())
				counted[c.Key] = c.Requests
			}
			g.Expect(counted).To(HaveKeyWithValue(operatorAgent, sent.Load()))
		}).WithPolling(time.Second).Should(Succeed())
		AddReportEntry("operator", fmt.Sprintf("%d requests, counted by it and in the audit log", sent.Load()))
	})
}

// always calls f at a rate until the container or spec ends.
func always(limit rate.Limit, f func(ctx context.Context, n int)) {
	ctx, stop := context.WithCancel(context.Background())
	limiter := rate.NewLimiter(limit, 1)
	var ended sync.WaitGroup
	ended.Go(func() {
		defer GinkgoRecover()
		for n := 0; limiter.Wait(ctx) == nil; n++ {
			f(context.WithoutCancel(ctx), n) // a round is finished
		}
	})
	DeferCleanup(func() {
		stop()
		ended.Wait()
	})
}

// kubectlApply changes something that is meant, as a person or a pipeline does.
func kubectlApply(_ context.Context, namespace string, n int) {
	GinkgoHelper()
	cmd := kubectlCommand("apply", "--server-side", "-n", namespace, "-f", "-")
	cmd.Stdin = strings.NewReader(fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: release}, data: {version: "1.%d", mode: %s}}`, n, []string{"blue", "green"}[n%2]))
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
}

// beatNode renews a node's heartbeat as kubelets do.
func beatNode(ctx context.Context, name string, _ int) {
	GinkgoHelper()
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","lastHeartbeatTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	Expect(admin.Status().Patch(ctx, node, client.RawPatch(types.StrategicMergePatchType, []byte(patch)), client.FieldOwner("kubelet"))).To(Succeed())
}

func createLease(ctx context.Context, namespace string) {
	GinkgoHelper()
	Expect(admin.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "leader"}})).To(Succeed())
}

func renewLease(ctx context.Context, namespace string, _ int) {
	GinkgoHelper()
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "leader"}}
	patch := fmt.Sprintf(`{"spec":{"renewTime":%q}}`, time.Now().UTC().Format(metav1.RFC3339Micro))
	Expect(admin.Patch(ctx, l, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("leader"))).To(Succeed())
}

func newDeployment(namespace, name, image string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"rollout": "web"}},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: image}}},
			},
		},
	}
}

// awaitRollout waits until all Deployments of the rollout are as their specs say.
func awaitRollout(ctx context.Context, namespace string, n int) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		var list appsv1.DeploymentList
		g.Expect(admin.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{"rollout": "web"})).To(Succeed())
		done := 0
		for _, d := range list.Items {
			if s := d.Status; s.ObservedGeneration == d.Generation && s.UpdatedReplicas == 1 && s.AvailableReplicas == 1 && s.Replicas == 1 {
				done++
			}
		}
		g.Expect(done).To(Equal(n))
	}).WithTimeout(patienceFor(n)).WithPolling(time.Second).Should(Succeed())
}

func newApp(namespace, name string) *quellv1alpha1.App {
	return &quellv1alpha1.App{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: quellv1alpha1.AppSpec{
			Image: "registry.example.com/team/shop:1", Ports: []quellv1alpha1.AppPort{{Name: "http", ContainerPort: 8080}},
		},
	}
}

func newScaler(namespace, name string, low, high int32) *autoscalingv2.HorizontalPodAutoscaler {
	half := int32(50)
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
			MinReplicas:    &low, MaxReplicas: high,
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name:   corev1.ResourceCPU,
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &half},
			}}},
		},
	}
}

// measure lets the Pods of a Deployment use so much CPU together, in thousandths, as a metrics server reports it.
func measure(ctx context.Context, namespace, name string, milli int64) {
	GinkgoHelper()
	var pods corev1.PodList
	Expect(admin.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{"app": name})).To(Succeed())
	for _, p := range pods.Items {
		m := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetrics",
			"timestamp": time.Now().UTC().Format(time.RFC3339), "window": "1s",
			"containers": []any{map[string]any{"name": "web", "usage": map[string]any{"cpu": fmt.Sprintf("%dm", milli/int64(len(pods.Items)))}}},
		}}
		m.SetNamespace(p.Namespace)
		m.SetName(p.Name)
		m.SetLabels(p.Labels)
		Expect(admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(m), client.FieldOwner("metrics-server"), client.ForceOwnership)).To(Succeed())
	}
}
