package faults_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
)

// obstacle is something in a namespace that keeps an App from what it asks for.
type obstacle struct {
	// raise puts it up, and returns what takes it away.
	raise func(ctx context.Context, ns string) (lower func(context.Context))
	// spec is what meets it, asked of an App that is Ready or, without one, of a new App.
	spec func(*quellv1alpha1.AppSpec)
	// condition, reason and words tell of it.
	condition, reason, words string
}

var obstacles = map[string]obstacle{
	"a quota on budgets":                  {quota("count/poddisruptionbudgets.policy"), withBudget, "Stalled", "Forbidden", `exceeded quota: full`},
	"a quota on Ingresses":                {quota("count/ingresses.networking.k8s.io"), withIngress, "Stalled", "Forbidden", `exceeded quota: full`},
	"a LimitRange that no Pod fits into":  {limitRange, withMuchMemory, "Reconciling", "PodsRefused", "maximum memory"},
	"a policy that calls a child invalid": {refuse(nil), withOtherImage, "Stalled", "Rejected", "no Deployment of shop:2"},
	"a policy that forbids a child":       {refuse(ptr.To(metav1.StatusReasonForbidden)), withOtherImage, "Stalled", "Forbidden", "forbidden by an admission policy"},
	"a policy that rewrites a child": {rewrite, func(s *quellv1alpha1.AppSpec) { s.CommonLabels = map[string]string{"team": "b"} },
		"Stalled", "NotKept", ".metadata.labels.team"},
}

func withOtherImage(s *quellv1alpha1.AppSpec) { s.Image = imageNo(2) }

func withMuchMemory(s *quellv1alpha1.AppSpec) {
	s.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}
}

// touches is how often somebody wakes the operator while an obstacle stands.
const touches = 3

var _ = Describe("What admission refuses or rewrites", func() {
	It("is told, costs at most one write of a child for each time that the App is touched, and 6 of the status, while "+
		"it lasts, and heals once it is gone", func(ctx SpecContext) {
		namespaces := map[string]string{}
		for name := range obstacles {
			namespaces[name] = newNamespace(ctx)
		}
		inParallel(len(obstacles), slices.Sorted(maps.Keys(obstacles)), func(name string) {
			obstacles[name].meet(ctx, name, namespaces[name])
		})
	})
})

// meet goes through the life of an obstacle in a namespace.
func (b obstacle) meet(ctx context.Context, name, ns string) {
	GinkgoHelper()
	o := newOperator(ns)
	o.start()
	defer o.stop()
	a := createReady(ctx, newApp(ns, "shop"))
	lower := b.raise(ctx, ns)
	defer lower(ctx)
	o.idle(ctx)
	o.forget()
	ask(ctx, a, b.spec)
	Expect(eventuallySays(ctx, a, b.condition, b.reason)).To(ContainSubstring(b.words))
	for range touches { // each look meets the same
		touch(ctx, a)
		o.idle(ctx)
	}
	children, statuses := most(perObject(o.sent(isChildWrite))), o.count(isStatusApply)
	tell("%s: %d writes of a child (bound %d), %d of the status (bound 6)", name, children, 1+touches, statuses)
	Expect(children).To(BeNumerically("<=", 1+touches), words(o.sent(ofLoop)))
	Expect(statuses).To(BeNumerically("<=", 6), words(o.sent(ofLoop)))
	lower(ctx)
	Eventually(ctx, func() error {
		o.clock.jump(10 * time.Minute) // what is not watched is looked at again after a minute, or five
		touch(ctx, a)
		return asAsked(ctx, a)
	}).WithPolling(2*time.Second).Should(Succeed(), name)
	expectQuiet(ctx, ns)
}

func quota(what corev1.ResourceName) func(context.Context, string) func(context.Context) {
	return func(ctx context.Context, ns string) func(context.Context) {
		GinkgoHelper()
		q := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "full"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{what: resource.MustParse("0")}},
		}
		Expect(admin.Create(ctx, q)).To(Succeed())
		Eventually(ctx, func(g Gomega) {
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(q), q)).To(Succeed())
			g.Expect(q.Status.Hard).NotTo(BeEmpty())
		}).Should(Succeed())
		return func(ctx context.Context) {
			GinkgoHelper()
			change(ctx, q, func(q *corev1.ResourceQuota) { q.Spec.Hard[what] = resource.MustParse("5") })
		}
	}
}

func limitRange(ctx context.Context, ns string) func(context.Context) {
	GinkgoHelper()
	l := &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "small"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Mi")},
		}}},
	}
	Expect(admin.Create(ctx, l)).To(Succeed())
	return func(ctx context.Context) {
		GinkgoHelper()
		Expect(client.IgnoreNotFound(admin.Delete(ctx, l))).To(Succeed())
	}
}

// matching picks writes of one resource in a namespace by anybody but the administrator.
func matching(ns, group, resource string) *admissionv1.MatchResources {
	return &admissionv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: ns}},
		ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
			Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource}},
		}}},
	}
}

// refuse has Deployments of the second image refused.
func refuse(reason *metav1.StatusReason) func(context.Context, string) func(context.Context) {
	return func(ctx context.Context, ns string) func(context.Context) {
		GinkgoHelper()
		policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: ns}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: matching(ns, "apps", "deployments"),
			Validations: []admissionv1.Validation{{
				Expression: "!object.spec.template.spec.containers.exists(c, c.image.endsWith('shop:2'))", Message: "no Deployment of shop:2", Reason: reason,
			}},
		}}
		binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: ns}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: ns, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		}}
		return install(ctx, policy, binding, func() error { return admin.Create(ctx, deploymentOf(ns, imageNo(2)), client.DryRunAll) })
	}
}

// rewrite has a label of every Service set to a value of its own.
func rewrite(ctx context.Context, ns string) func(context.Context) {
	GinkgoHelper()
	policy := &admissionv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: ns}, Spec: admissionv1.MutatingAdmissionPolicySpec{
		ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
		MatchConstraints:   matching(ns, "", "services"),
		Mutations: []admissionv1.Mutation{{
			PatchType:          admissionv1.PatchTypeApplyConfiguration,
			ApplyConfiguration: &admissionv1.ApplyConfiguration{Expression: `Object{metadata: Object.metadata{labels: {"team": "policy"}}}`},
		}},
	}}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: ns}, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: ns}}
	return install(ctx, policy, binding, func() error {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "probe"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
		if err := admin.Create(ctx, s, client.DryRunAll); err != nil || s.Labels["team"] != "policy" {
			return err
		}
		return errors.New("rewritten")
	})
}

// install installs a policy and waits until it is in force, which probe tells by an error.
func install(ctx context.Context, policy, binding client.Object, probe func() error) (remove func(context.Context)) {
	GinkgoHelper()
	Expect(admin.Create(ctx, policy)).To(Succeed())
	Expect(admin.Create(ctx, binding)).To(Succeed())
	remove = func(ctx context.Context) {
		GinkgoHelper()
		Expect(client.IgnoreNotFound(admin.Delete(ctx, binding))).To(Succeed())
		Expect(client.IgnoreNotFound(admin.Delete(ctx, policy))).To(Succeed())
	}
	Eventually(ctx, probe).ShouldNot(Succeed())
	return remove
}

// deploymentOf is a Deployment of an image, for a dry run.
func deploymentOf(ns, image string) *appsv1.Deployment {
	labels := map[string]string{"probe": "probe"}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "probe"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: image}}},
		},
	}}
}
