package faults_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
)

// newNamespace makes a namespace that is removed, with the Apps in it, when the spec ends.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "faults-"}}
	Expect(admin.Create(ctx, ns)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(admin.Delete(ctx, ns))).To(Succeed()) })
	return ns.Name
}

// newApp is an App with a Deployment and a Service, not created yet.
func newApp(namespace, name string, change ...func(*quellv1alpha1.AppSpec)) *quellv1alpha1.App {
	a := &quellv1alpha1.App{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: quellv1alpha1.AppSpec{
			Image: imageNo(1), Replicas: ptr.To[int32](2), CommonLabels: map[string]string{"team": "a"},
			Ports: []quellv1alpha1.AppPort{{Name: "http", ContainerPort: 8080}},
		},
	}
	for _, f := range change {
		f(&a.Spec)
	}
	return a
}

func imageNo(n int) string { return fmt.Sprintf("registry.example.com/team/shop:%d", n) }

// withAll asks for every kind of child.
func withAll(s *quellv1alpha1.AppSpec) {
	withAccount(s)
	withPolicy(s)
	withAutoscaler(s)
	withBudget(s)
	withIngress(s)
	withRoute(s)
}

func withAccount(s *quellv1alpha1.AppSpec) {
	s.ServiceAccount = &quellv1alpha1.AppServiceAccount{Create: ptr.To(true)}
}

func withPolicy(s *quellv1alpha1.AppSpec) {
	s.NetworkPolicy = &quellv1alpha1.AppNetworkPolicy{
		Ingress: &quellv1alpha1.AppNetworkIngress{From: []quellv1alpha1.AppNetworkPeer{{App: "web"}}, Ports: []string{"http"}},
	}
}

func withAutoscaler(s *quellv1alpha1.AppSpec) {
	s.Autoscaling = &quellv1alpha1.AppAutoscaling{MinReplicas: 2, MaxReplicas: 4, CPUUtilization: 80}
}

func withBudget(s *quellv1alpha1.AppSpec) {
	s.PodDisruptionBudget = &quellv1alpha1.AppPodDisruptionBudget{MaxUnavailable: ptr.To(intstr.FromInt32(1))}
}

func withIngress(s *quellv1alpha1.AppSpec) {
	s.Ingress = &quellv1alpha1.AppIngress{Hosts: []quellv1alpha1.AppIngressHost{{Host: "shop.example.com"}}}
}

func withRoute(s *quellv1alpha1.AppSpec) {
	s.HTTPRoute = &quellv1alpha1.AppHTTPRoute{
		ParentRefs: []quellv1alpha1.AppRouteParent{{Name: "gateway"}}, Hostnames: []string{"shop.example.com"},
	}
}

func create(ctx context.Context, a *quellv1alpha1.App) *quellv1alpha1.App {
	GinkgoHelper()
	Expect(admin.Create(ctx, a)).To(Succeed())
	return a
}

// createReady creates an App and waits until it is as it asks.
func createReady(ctx context.Context, a *quellv1alpha1.App) *quellv1alpha1.App {
	GinkgoHelper()
	create(ctx, a)
	converge(ctx, a)
	return a
}

// converge waits until an App is as it asks.
func converge(ctx context.Context, apps ...*quellv1alpha1.App) {
	GinkgoHelper()
	for _, a := range apps {
		Eventually(ctx, func() error { return asAsked(ctx, a) }).Should(Succeed(), a.Name)
	}
}

// change updates an object as a person would, again when somebody else was faster.
func change[T client.Object](ctx context.Context, o T, f func(T)) {
	GinkgoHelper()
	Expect(tryChange(ctx, o, f)).To(Succeed())
}

func tryChange[T client.Object](ctx context.Context, o T, f func(T)) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		f(o)
		return admin.Update(ctx, o, client.FieldOwner("kubectl-edit"))
	})
}

// ask changes an App's spec.
func ask(ctx context.Context, a *quellv1alpha1.App, f func(*quellv1alpha1.AppSpec)) {
	GinkgoHelper()
	change(ctx, a, func(a *quellv1alpha1.App) { f(&a.Spec) })
}

// touch wakes the operator for an App without asking for anything.
func touch(ctx context.Context, a *quellv1alpha1.App) {
	GinkgoHelper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"touched":%q}}}`, time.Now())
	Expect(admin.Patch(ctx, a, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
}

// condition returns an App's condition as it is now, nil when there is none.
func condition(ctx context.Context, g Gomega, a *quellv1alpha1.App, kind string) *metav1.Condition {
	g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(a), a)).To(Succeed())
	return meta.FindStatusCondition(a.Status.Conditions, kind)
}

// eventuallySays waits until a condition of the newest generation is True with a reason and returns its message.
func eventuallySays(ctx context.Context, a *quellv1alpha1.App, kind, reason string) string {
	GinkgoHelper()
	var message string
	Eventually(ctx, func(g Gomega) {
		c := condition(ctx, g, a, kind)
		g.Expect(c).NotTo(BeNil(), "status %+v", a.Status)
		g.Expect(c.Reason).To(Equal(reason), c.Message)
		g.Expect(c.Status).To(Equal(metav1.ConditionTrue))
		g.Expect(a.Status.ObservedGeneration).To(Equal(a.Generation))
		message = c.Message
	}).Should(Succeed())
	return message
}

// idle waits until an operator has sent nothing of its reconciles for a while, longer than a status settles.
func (o *operator) idle(ctx context.Context) {
	GinkgoHelper()
	last, at := -1, time.Now()
	Eventually(ctx, func() time.Duration {
		if n := o.count(ofLoop); n != last {
			last, at = n, time.Now()
		}
		return time.Since(at)
	}).Should(BeNumerically(">", 2500*time.Millisecond))
}

// inParallel runs cases, a few at once, and fails when one of them has.
func inParallel[T any](atOnce int, cases []T, do func(T)) {
	GinkgoHelper()
	var group sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for _, c := range cases {
		group.Add(1)
		slots <- struct{}{}
		go func() {
			defer group.Done()
			defer func() { <-slots }()
			defer GinkgoRecover()
			do(c)
		}()
	}
	group.Wait()
	if CurrentSpecReport().Failed() {
		Fail("a case failed, see above")
	}
}

// tell puts a figure into the report.
func tell(format string, args ...any) {
	AddReportEntry(fmt.Sprintf(format, args...), ReportEntryVisibilityAlways)
}
