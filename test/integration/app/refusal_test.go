package app_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/test/localcluster"
)

// calm is how long no request may come for an App that waits for a person: its next look is a minute after the last, while
// the work queue's back-off begins with milliseconds.
const calm = 6 * time.Second

var _ = Describe("An App that the API server refuses", func() {
	It("says which field is wrong, keeps what serves, and is not retried hotly", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		a := createReady(ctx, newApp(ns, "shop", replicas(2)))
		change(ctx, a, func(a *quellv1alpha1.App) {
			a.Spec.Resources = &corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")},
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
			}
		})
		message := eventuallyCondition(ctx, a, quellv1alpha1.ConditionStalled, "Rejected")
		Expect(message).To(ContainSubstring("spec.template.spec.containers[0].resources.requests: "))
		Expect(a.Status.Phase).To(Equal(quellv1alpha1.PhaseFailed))
		Expect(a.Status.Ready).To(Equal("2/2")) // the old Pods go on
		Expect(meta.IsStatusConditionTrue(a.Status.Conditions, quellv1alpha1.ConditionAvailable)).To(BeTrue())
		Expect(meta.IsStatusConditionFalse(a.Status.Conditions, quellv1alpha1.ConditionReady)).To(BeTrue())
		Eventually(ctx, func(g Gomega) { g.Expect(eventsOf(ctx, g, a, "Rejected")).To(HaveLen(1)) }).Should(Succeed())
		expectCalm(ctx, ns, calm)

		change(ctx, a, func(a *quellv1alpha1.App) { a.Spec.Resources = nil })
		converge(ctx, a)
	})

	It("names two App ports that share a Service port", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		a := create(ctx, newApp(ns, "shop", func(s *quellv1alpha1.AppSpec) {
			s.Ports = append(s.Ports, quellv1alpha1.AppPort{Name: "admin", ContainerPort: 9090})
			s.Service = &quellv1alpha1.AppService{Ports: []quellv1alpha1.AppServicePort{{Name: "http", Port: 80}, {Name: "admin", Port: 80}}}
		}))
		Expect(eventuallyCondition(ctx, a, quellv1alpha1.ConditionStalled, "Rejected")).To(ContainSubstring(
			`Service "shop" was rejected: spec.ports "http" and spec.ports "admin" would both be port 80/TCP of the Service: give one of them another number in spec.service.ports or spec.service.extraPorts`))
	})

	It("heals after a quota was raised", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		quota := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "none"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/deployments.apps": resource.MustParse("0")}},
		}
		Expect(admin.Create(ctx, quota)).To(Succeed())
		Eventually(ctx, func(g Gomega) {
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(quota), quota)).To(Succeed())
			g.Expect(quota.Status.Hard).NotTo(BeEmpty())
		}).Should(Succeed())
		a := create(ctx, newApp(ns, "shop"))
		Expect(eventuallyCondition(ctx, a, quellv1alpha1.ConditionStalled, "Forbidden")).To(ContainSubstring("quota"))
		expectCalm(ctx, ns, calm/3)

		Expect(admin.Delete(ctx, quota)).To(Succeed())
		touch(ctx, a)
		converge(ctx, a)
	})

	It("heals after the operator got its rights back", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		without(ctx, "deployments", func() {
			a := create(ctx, newApp(ns, "shop"))
			eventuallyCondition(ctx, a, quellv1alpha1.ConditionStalled, "Forbidden")
			expectCalm(ctx, ns, calm/3)
		})
		a := newApp(ns, "shop")
		touch(ctx, a)
		converge(ctx, a)
	})

	It("needs the right to update an App's finalizers where owner references are policed", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		without(ctx, "apps/finalizers", func() {
			eventuallyCondition(ctx, create(ctx, newApp(ns, "shop")), quellv1alpha1.ConditionStalled, "Forbidden")
		})
	})
})

var _ = Describe("An App whose children somebody else changes", func() {
	It("with conflictPolicy Report leaves the child alone, says whose the field is, and does not waver", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		a := createReady(ctx, newApp(ns, "shop", func(s *quellv1alpha1.AppSpec) {
			s.ConflictPolicy = &quellv1alpha1.ConflictPolicy{Mode: quellv1alpha1.ConflictReport}
		}))
		edit(func(d *appsv1.Deployment) { *d.Spec.Replicas = 2 })(ctx, a)
		message := eventuallyCondition(ctx, a, quellv1alpha1.ConditionStalled, "FieldConflict")
		Expect(message).To(And(ContainSubstring(".spec.replicas"), ContainSubstring(`"kubectl-edit"`)))
		Eventually(ctx, func(g Gomega) { g.Expect(status(ctx, g, a).Ready).To(Equal("2/2")) }).Should(Succeed())

		for range 6 { // each look meets the same conflict, and must say the same
			touch(ctx, a)
			awaitIdle(ctx)
			c := meta.FindStatusCondition(status(ctx, Default, a).Conditions, quellv1alpha1.ConditionStalled)
			Expect(c).NotTo(BeNil(), "status %+v", a.Status)
			Expect(c.Reason).To(Equal("FieldConflict"))
		}
		Expect(*deployment(ctx, Default, a).Spec.Replicas).To(BeEquivalentTo(2))

		change(ctx, a, func(a *quellv1alpha1.App) { a.Spec.ConflictPolicy = nil })
		Eventually(ctx, func(g Gomega) { g.Expect(*deployment(ctx, g, a).Spec.Replicas).To(BeEquivalentTo(1)) }).Should(Succeed())
		By("taking the conflict for settled by the person who changed the policy")
		eventuallyPhase(ctx, a, quellv1alpha1.PhaseRunning)
	})

	It("does not fight a rival that never gives up, names it, and heals when it is gone", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		a := createReady(ctx, newApp(ns, "shop", labelled("team", "a")))
		start := mark()
		stop := fight(ctx, a)
		message := eventuallyCondition(ctx, a, quellv1alpha1.ConditionReconciling, "FieldContended")
		Expect(message).To(And(ContainSubstring(`.metadata.labels.team`), ContainSubstring(`"rival"`)))
		Expect(a.Status.Phase).To(Equal(quellv1alpha1.PhaseDegraded))
		Consistently(ctx, func() int { return count(manager.writes(start, ns), to("deployments")) }, calm, pollEach).Should(BeNumerically("<=", 5))
		rivalWrites := stop()

		writes := manager.writes(start, ns)
		AddReportEntry("fight", map[string]int{"rival": rivalWrites, "children": count(writes, to("deployments")), "status": count(writes, to("apps/status")), "events": count(writes, to("events"))})
		Expect(rivalWrites).To(BeNumerically(">", 20))
		Expect(count(writes, to("apps/status"))).To(BeNumerically("<=", 10), localcluster.Summary(writes))
		Expect(count(writes, to("events"))).To(BeNumerically("<=", 10))
		Eventually(ctx, func(g Gomega) { g.Expect(deployment(ctx, g, a).Labels).To(HaveKeyWithValue("team", "a")) }).Should(Succeed())

		// The status tells of the fight until it has been calm for minutes. A new process does not remember it.
		Expect(status(ctx, Default, a).Phase).To(Equal(quellv1alpha1.PhaseDegraded))
		manager.restart()
		eventuallyPhase(ctx, a, quellv1alpha1.PhaseRunning)
	})
})

// expectCalm wants no request about a namespace for a time.
func expectCalm(ctx context.Context, namespace string, duration time.Duration) {
	GinkgoHelper()
	awaitIdle(ctx)
	since := mark()
	Consistently(ctx, func() string {
		return localcluster.Summary(manager.requests(since, func(r localcluster.Request) bool { return r.Namespace == namespace }))
	}, duration, time.Second).Should(Equal(localcluster.Summary(nil)))
}

// without takes the operator's rights on a resource away while f runs.
func without(ctx context.Context, resource string, f func()) {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "quell-manager"}}
	var rules []rbacv1.PolicyRule
	change(ctx, role, func(r *rbacv1.ClusterRole) {
		rules = r.Rules
		r.Rules = nil
		for _, rule := range rules {
			if rule.Resources[0] != resource {
				r.Rules = append(r.Rules, rule)
			} else if resource == "deployments" { // reading is needed to get as far as writing
				rule.Verbs = []string{"get", "list", "watch"}
				r.Rules = append(r.Rules, rule)
			}
		}
	})
	defer change(ctx, role, func(r *rbacv1.ClusterRole) { r.Rules = rules })
	f()
}

// fight forces a label of an App's Deployment again and again until stop is called, which tells how often.
func fight(ctx context.Context, a *quellv1alpha1.App) (stop func() int) {
	rival, key := clientAs(cluster.Config(), "rival"), client.ObjectKeyFromObject(a)
	return repeat(ctx, 50*time.Millisecond, func(ctx context.Context, _ int) error {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		before := d.DeepCopy()
		d.Labels = map[string]string{"team": "theirs"}
		return rival.Patch(ctx, d, client.MergeFrom(before), client.FieldOwner("rival"))
	})
}

// repeat does something, told how often it succeeded so far, and again after each pause until stop is called, which tells the
// number in the end. What do reads must be its own: a spec reads its objects anew meanwhile.
func repeat(ctx context.Context, pause time.Duration, do func(ctx context.Context, n int) error) (stop func() int) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan int)
	go func() {
		defer GinkgoRecover()
		n := 0
		for ctx.Err() == nil {
			if do(ctx, n) == nil {
				n++
			}
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
		done <- n
	}()
	return func() int { cancel(); return <-done }
}
