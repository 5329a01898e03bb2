package app_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/app"
	"github.com/hduolab/quell/test/localcluster"
)

var _ = Describe("An object that has the name of an App's child", func() {
	It("is adopted when it says so, and not before", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		own := map[string]string{app.LabelName: "shop", app.LabelInstance: "shop"}
		foreign := foreignDeployment(ctx, ns, own)
		port := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "shop"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "theirs", Port: 1}}}}
		Expect(admin.Create(ctx, port, client.FieldOwner("kubectl-create"))).To(Succeed())
		start := mark()

		By("saying what adoption would change")
		a := create(ctx, newApp(ns, "shop"))
		message := eventuallyCondition(ctx, a, quellv1alpha1.ConditionStalled, "NameTaken")
		Expect(message).To(And(
			ContainSubstring("kubectl annotate -n "+ns+" deployment shop "+app.AnnotationAdopt+"=shop"),
			ContainSubstring(`.spec.template.spec.containers[name="app"]`),
			ContainSubstring(`.spec.template.metadata.labels["app.kubernetes.io/managed-by"]`),
			ContainSubstring(`it keeps .spec.template.spec.containers[name="theirs"]`),
			Not(ContainSubstring("managedFields")), Not(ContainSubstring("ownerReferences")),
		))
		// The event is sent after the status, on its own.
		Eventually(ctx, func(g Gomega) { g.Expect(eventsOf(ctx, g, a, "NameTaken")).NotTo(BeEmpty()) }).Should(Succeed())
		since := mark()
		for i := range 2 { // each look says the same
			touch(ctx, a)
			settled := a.ResourceVersion
			awaitIdle(ctx)
			Expect(status(ctx, Default, a).Conditions).NotTo(BeEmpty())
			Expect(a.ResourceVersion).To(Equal(settled), "look %d", i)
		}
		Expect(localcluster.Summary(manager.writes(since, ns))).To(Equal(localcluster.Summary(nil)))

		By("offering it to another App")
		offer(ctx, foreign, "other")
		touch(ctx, a)
		Eventually(ctx, func(g Gomega) {
			stalled := meta.FindStatusCondition(status(ctx, g, a).Conditions, quellv1alpha1.ConditionStalled)
			g.Expect(stalled).NotTo(BeNil())
			g.Expect(stalled.Message).To(ContainSubstring(`--overwrite (it says "other" now)`))
		}).Should(Succeed())

		By("offering it to this App")
		offer(ctx, foreign, "shop")
		offer(ctx, port, "shop")
		touch(ctx, a) // it would be looked at a minute later
		converge(ctx, a)
		adopted := deployment(ctx, Default, a)
		Expect(adopted.UID).To(Equal(foreign.UID))
		Expect(metav1.IsControlledBy(adopted, a)).To(BeTrue())
		Expect(metav1.IsControlledBy(service(ctx, Default, a), a)).To(BeTrue())
		Expect(adopted.Labels).To(HaveKeyWithValue(app.LabelManagedBy, app.ManagedBy))
		Expect(adopted.Annotations).To(HaveKeyWithValue(app.AnnotationAdopt, "shop"))
		Expect(adopted.Annotations).To(HaveKeyWithValue(app.AnnotationRendering, "1"))
		Expect(adopted.Spec.Template.Spec.SecurityContext).To(Equal(foreign.Spec.Template.Spec.SecurityContext), "no defaults are filled in")
		Expect(adopted.Spec.Template.Spec.TopologySpreadConstraints).To(BeEmpty())
		Expect(a.Status.Rendering).To(BeEquivalentTo(1), "whatever it was before")
		Eventually(ctx, func(g Gomega) { g.Expect(eventsOf(ctx, g, a, "Adopted")).To(HaveLen(2)) }).Should(Succeed())
		Expect(eventsOf(ctx, Default, a, "FieldTakenBack")).To(BeEmpty())

		writes := slices.DeleteFunc(manager.writes(start, ns), func(r localcluster.Request) bool { return r.Code == http.StatusConflict })
		Expect(count(writes, to("deployments"))).To(Equal(1), localcluster.Summary(writes))
		Expect(count(writes, to("services"))).To(Equal(1), localcluster.Summary(writes))
		expectCalm(ctx, ns, atRest)
	})

	It("is not adopted when its selector is another, with the way to replace it", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		foreign := foreignDeployment(ctx, ns, map[string]string{"x": "y"})
		offer(ctx, foreign, "shop")
		start := mark()
		a := create(ctx, newApp(ns, "shop"))
		Expect(eventuallyCondition(ctx, a, quellv1alpha1.ConditionStalled, "NameTaken")).To(And(
			ContainSubstring("spec.selector"), ContainSubstring("kubectl delete -n "+ns+" deployment shop --cascade=orphan")))
		expectCalm(ctx, ns, atRest)
		Expect(count(manager.writes(start, ns), to("deployments"))).To(BeZero())

		kubectl("delete", "-n", ns, "deployment", "shop", "--cascade=orphan")
		touch(ctx, a)
		converge(ctx, a)
		Expect(pods(ctx, ns, map[string]string{"x": "y"})).To(HaveLen(1), "the old Pods go on")
	})

	It("is not adopted when it has a controller", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "owner"}}
		Expect(admin.Create(ctx, owner)).To(Succeed())
		port := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: ns, Name: "shop", Annotations: map[string]string{app.AnnotationAdopt: "shop"},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))},
			},
			Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}},
		}
		Expect(admin.Create(ctx, port)).To(Succeed())
		start := mark()
		a := create(ctx, newApp(ns, "shop"))
		Expect(eventuallyCondition(ctx, a, quellv1alpha1.ConditionStalled, "NameTaken")).To(And(
			ContainSubstring(`it belongs to ConfigMap "owner"`), ContainSubstring("adopts no object that has a controller")))
		Expect(count(manager.writes(start, ns), to("services"))).To(BeZero())
	})
})

// foreignDeployment makes a Deployment named shop that runs one Pod.
func foreignDeployment(ctx context.Context, ns string, selector map[string]string) *appsv1.Deployment {
	GinkgoHelper()
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "shop"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: selector},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: selector},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "theirs", Image: "registry.example.com/theirs:1"}}},
			},
		},
	}
	Expect(admin.Create(ctx, d, client.FieldOwner("kubectl-create"))).To(Succeed())
	Eventually(ctx, func(g Gomega) {
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(d), d)).To(Succeed())
		g.Expect(d.Status.AvailableReplicas).To(BeEquivalentTo(1))
	}).Should(Succeed())
	return d
}

func offer(ctx context.Context, o client.Object, name string) {
	GinkgoHelper()
	patchMeta(ctx, o.DeepCopyObject().(client.Object), fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, app.AnnotationAdopt, name))
}
