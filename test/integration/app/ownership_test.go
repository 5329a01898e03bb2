package app_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/app"
)

var _ = Describe("An App's children", func() {
	DescribeTable("are not taken from others", func(ctx SpecContext, foreign client.Object, kind string) {
		ns := newNamespace(ctx)
		foreign = foreign.DeepCopyObject().(client.Object)
		foreign.SetNamespace(ns)
		Expect(admin.Create(ctx, foreign, client.FieldOwner("kubectl-create"))).To(Succeed())
		before := foreign.GetGeneration()

		a := create(ctx, newApp(ns, "shop"))
		message := eventuallyCondition(ctx, a, quellv1alpha1.ConditionStalled, "NameTaken")
		Expect(message).To(And(ContainSubstring(kind+` "shop"`), ContainSubstring(`"kubectl-create"`), ContainSubstring("rename the App")))
		Expect(a.Status.Phase).To(Equal(quellv1alpha1.PhaseFailed))
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(foreign), foreign)).To(Succeed())
		Expect(foreign.GetOwnerReferences()).To(BeEmpty())
		Expect(foreign.GetGeneration()).To(Equal(before))

		Expect(admin.Delete(ctx, foreign)).To(Succeed())
		touch(ctx, a) // it would be looked at a minute later
		converge(ctx, a)
	},
		Entry("a Deployment", &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"x": "y"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"x": "y"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "x"}}}},
		}}, "Deployment"),
		Entry("a Service", &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}}}, "Service"),
		Entry("a Service that carries the operator's label", &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{app.LabelManagedBy: app.ManagedBy}}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}},
		}, "Service"),
	)

	It("do not matter when they belong to others and are not wanted", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		foreign := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "shop", Labels: map[string]string{app.LabelManagedBy: app.ManagedBy}},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}},
		}
		Expect(admin.Create(ctx, foreign)).To(Succeed())
		createReady(ctx, newApp(ns, "shop", minimal))
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(foreign), foreign)).To(Succeed())
	})

	It("go with the App, in either way of deletion", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
			a := createReady(ctx, newApp(ns, "shop"))
			Expect(admin.Delete(ctx, a, client.PropagationPolicy(policy))).To(Succeed())
			Eventually(ctx, func(g Gomega) {
				g.Expect(apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(a), a))).To(BeTrue())
				g.Expect(apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(a), &appsv1.Deployment{}))).To(BeTrue())
				g.Expect(apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(a), &corev1.Service{}))).To(BeTrue())
			}).Should(Succeed())
		}
	})

	It("are made anew when the App is deleted and created again at once", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		old := createReady(ctx, newApp(ns, "shop"))
		first := deployment(ctx, Default, old)
		for range 3 {
			Expect(admin.Delete(ctx, old)).To(Succeed())
			old = create(ctx, newApp(ns, "shop"))
		}
		converge(ctx, old)
		second := deployment(ctx, Default, old)
		Expect(second.UID).NotTo(Equal(first.UID))
		Expect(metav1.IsControlledBy(second, old)).To(BeTrue())
	})

	It("stay when the App is deleted with --cascade=orphan, and are taken over by the next of its name", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		a := createReady(ctx, newApp(ns, "shop"))
		kept := deployment(ctx, Default, a)
		Expect(admin.Delete(ctx, a, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
		Eventually(ctx, func() bool { return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(a), a)) }).Should(BeTrue())
		Consistently(ctx, func(g Gomega) { g.Expect(deployment(ctx, g, a).OwnerReferences).To(BeEmpty()) }, 3*time.Second, pollEach).Should(Succeed())

		next := createReady(ctx, newApp(ns, "shop"))
		taken := deployment(ctx, Default, next)
		Expect(taken.UID).To(Equal(kept.UID))
		Expect(metav1.IsControlledBy(taken, next)).To(BeTrue())
	})

	It("are not mixed up between Apps", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		a, b := create(ctx, newApp(ns, "shop", replicas(2))), create(ctx, newApp(ns, "shop-2", replicas(3)))
		converge(ctx, a)
		converge(ctx, b)
		for _, x := range []*quellv1alpha1.App{a, b} {
			selector, err := metav1.ParseToLabelSelector(x.Status.Selector)
			Expect(err).NotTo(HaveOccurred())
			Expect(selector.MatchLabels).To(Equal(service(ctx, Default, x).Spec.Selector))
			Expect(pods(ctx, ns, selector.MatchLabels)).To(HaveLen(int(*x.Spec.Replicas)))
		}
	})

	DescribeTable("lose the Service that is not wanted any more", func(ctx SpecContext, f func(*quellv1alpha1.App)) {
		ns := newNamespace(ctx)
		other := createReady(ctx, newApp(ns, "other"))
		a := createReady(ctx, newApp(ns, "shop"))
		Expect(a.Status.Endpoint).To(Equal("shop." + ns + ".svc:8080"))
		change(ctx, a, f)
		Eventually(ctx, func(g Gomega) {
			err := admin.Get(ctx, client.ObjectKeyFromObject(a), &corev1.Service{})
			g.Expect(apierrors.IsNotFound(err)).To(BeTrue())
		}).Should(Succeed())
		converge(ctx, a)
		Expect(a.Status.Endpoint).To(BeEmpty())
		service(ctx, Default, other)

		change(ctx, a, func(a *quellv1alpha1.App) { a.Spec = newApp("", "").Spec })
		Eventually(ctx, func(g Gomega) { service(ctx, g, a) }).Should(Succeed())
		converge(ctx, a)
	},
		Entry("without ports", func(a *quellv1alpha1.App) { a.Spec.Ports = nil }),
		Entry("with mode None", func(a *quellv1alpha1.App) {
			a.Spec.Service = &quellv1alpha1.AppService{Mode: quellv1alpha1.ServiceNone}
		}),
	)

	It("follow the service type and its port mapping there and back", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		a := createReady(ctx, newApp(ns, "shop"))
		change(ctx, a, func(a *quellv1alpha1.App) {
			a.Spec.Service = &quellv1alpha1.AppService{Type: corev1.ServiceTypeNodePort, Ports: []quellv1alpha1.AppServicePort{{Name: "http", Port: 80}}}
		})
		Eventually(ctx, func(g Gomega) {
			s := service(ctx, g, a)
			g.Expect(s.Spec.Type).To(Equal(corev1.ServiceTypeNodePort))
			g.Expect(s.Spec.Ports).To(HaveLen(1))
			g.Expect(s.Spec.Ports[0].Port).To(BeEquivalentTo(80))
			g.Expect(s.Spec.Ports[0].TargetPort.String()).To(Equal("http"))
			g.Expect(s.Spec.Ports[0].NodePort).NotTo(BeZero())
		}).Should(Succeed())
		converge(ctx, a)
		Expect(a.Status.Endpoint).To(HaveSuffix(":80"))

		change(ctx, a, func(a *quellv1alpha1.App) { a.Spec.Service = nil })
		Eventually(ctx, func(g Gomega) {
			s := service(ctx, g, a)
			g.Expect(s.Spec.Type).To(Equal(corev1.ServiceTypeClusterIP))
			g.Expect(s.Spec.Ports).To(HaveLen(1))
			g.Expect(s.Spec.Ports[0].NodePort).To(BeZero())
		}).Should(Succeed())
		converge(ctx, a)
	})
})

func pods(ctx context.Context, namespace string, labels map[string]string) []corev1.Pod {
	GinkgoHelper()
	var list corev1.PodList
	Expect(admin.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels(labels))).To(Succeed())
	return list.Items
}
