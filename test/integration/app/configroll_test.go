package app_test

import (
	"context"
	"path/filepath"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/app"
	"github.com/hduolab/quell/test/localcluster"
)

// atRest is how long an App in a standing state is watched, after it has been idle for a second.
const atRest = time.Second

// password is a content that nobody but the API server may show.
const password = "correct-horse-battery"

// Within a container the specs run in this order: a kind is watched from the first App on that asks for it.
var _ = Describe("Config files with onChange Roll", Ordered, func() {
	for _, kind := range []rollingKind{
		{"ConfigMap", "configmaps", newConfigMap, func(f *quellv1alpha1.AppConfigFiles) { f.ConfigMap = "settings" }},
		{"Secret", "secrets", newSecret, func(f *quellv1alpha1.AppConfigFiles) { f.Secret = "settings" }},
	} {
		Context("of a "+kind.name, Ordered, kind.specs)
	}
})

type rollingKind struct {
	name, resource string
	object         func(namespace, value string) client.Object
	refer          func(*quellv1alpha1.AppConfigFiles)
}

func newConfigMap(namespace, value string) client.Object {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "settings"}, Data: map[string]string{"key": value}}
}

func newSecret(namespace, value string) client.Object {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "settings"}, Data: map[string][]byte{"key": []byte(value)}}
}

func (k rollingKind) specs() {
	var (
		ns string
		a  *quellv1alpha1.App
	)
	role := filepath.Join(configDir, "configroll", k.resource+".yaml")
	roll := func(s *quellv1alpha1.AppSpec) {
		f := quellv1alpha1.AppConfigFiles{Name: "settings", MountPath: "/etc/app", OnChange: quellv1alpha1.ConfigRoll}
		k.refer(&f)
		s.ConfigFiles = append(s.ConfigFiles, f)
	}
	// reads are the operator's requests for the kind since a mark, by verb.
	reads := func(since localcluster.Mark) map[string]int {
		verbs := map[string]int{}
		for _, r := range manager.requests(since, to(k.resource)) {
			verbs[r.Verb]++
		}
		return verbs
	}

	// standing watches an App in a standing state, once for both kinds.
	standing := func(ctx SpecContext) {
		if k.name == "ConfigMap" {
			expectCalm(ctx, ns, atRest)
		}
	}

	BeforeAll(func(ctx SpecContext) {
		ns = newNamespace(ctx)
		manager.restart() // other specs may have had the right, and a watch goes on without it
		DeferCleanup(func() { kubectl("delete", "--ignore-not-found", "-f", role) })
	})

	It("say which permission is missing, ask for nothing, and begin once it is granted", func(ctx SpecContext) {
		start := mark()
		Expect(admin.Create(ctx, k.object(ns, "one"))).To(Succeed())
		a = create(ctx, newApp(ns, "shop", minimal, roll))
		message := eventuallyCondition(ctx, a, quellv1alpha1.ConditionStalled, "Forbidden")
		Expect(message).To(And(ContainSubstring(k.name+` "settings"`), ContainSubstring("kubectl apply -k config/configroll"), ContainSubstring("Ignore")))
		Eventually(ctx, func(g Gomega) { g.Expect(deployment(ctx, g, a).Status.AvailableReplicas).To(BeEquivalentTo(1)) }).Should(Succeed())
		Expect(configHash(ctx, Default, a)).To(BeEmpty())
		standing(ctx)
		Expect(reads(start)).To(BeEmpty())
		Expect(count(manager.requests(start), to("selfsubjectaccessreviews"))).To(BeNumerically("<=", 3))

		kubectl("apply", "-f", role)
		start = mark()
		Eventually(ctx, func(g Gomega) {
			touch(ctx, a) // it would be looked at a minute later
			g.Expect(configHash(ctx, g, a)).NotTo(BeEmpty())
		}).WithPolling(time.Second / 2).Should(Succeed())
		converge(ctx, a)
		verbs := reads(start)
		Expect(verbs).To(HaveKeyWithValue("get", 1))
		Expect(verbs["watch"]).To(BeNumerically("<=", 2)) // a watch, and the list that it brings along
	})

	It("replace the Pods once for a change of content, and not for one of metadata", func(ctx SpecContext) {
		other := createReady(ctx, newApp(ns, "other", minimal, roll))
		Expect(configHash(ctx, Default, other)).To(Equal(configHash(ctx, Default, a)))

		By("changing a label")
		awaitIdle(ctx)
		start, before := mark(), configHash(ctx, Default, a)
		patchMeta(ctx, k.object(ns, ""), `{"metadata":{"labels":{"touched":"yes"},"annotations":{"touched":"yes"}}}`)
		Eventually(ctx, func() map[string]int { return reads(start) }).Should(Equal(map[string]int{"get": 1}))
		awaitIdle(ctx)
		Expect(localcluster.Summary(manager.writes(start, ns))).To(Equal(localcluster.Summary(nil)))
		Expect(reads(start)).To(Equal(map[string]int{"get": 1}), "once for two Apps")

		By("changing the content")
		start = mark()
		changed := k.object(ns, password)
		Expect(admin.Update(ctx, changed)).To(Succeed())
		for _, a := range []*quellv1alpha1.App{a, other} {
			Eventually(ctx, func(g Gomega) { g.Expect(configHash(ctx, g, a)).NotTo(Equal(before)) }).Should(Succeed())
			converge(ctx, a)
		}
		Expect(reads(start)).To(Equal(map[string]int{"get": 1}), "once for two Apps")
		writes := manager.writes(start, ns)
		Expect(count(writes, to("deployments"))).To(Equal(2), localcluster.Summary(writes))
		Expect(count(writes, to("apps/status"))).To(BeNumerically("<=", 6), localcluster.Summary(writes))
		standing(ctx)

		if k.name != "Secret" {
			return
		}
		By("looking for the content where it must not be")
		shown := kubectl("get", "-n", ns, "apps,deployments,replicasets,pods,events", "-o", "yaml")
		Expect(shown).To(ContainSubstring(app.AnnotationConfigHash + ": "))
		Expect(shown).NotTo(ContainSubstring(password))
	})

	if k.name == "Secret" {
		return // what follows is the same for both
	}

	It("leave the Pods as they are while the object is missing, and say so", func(ctx SpecContext) {
		before, start := configHash(ctx, Default, a), mark()
		Expect(admin.Delete(ctx, k.object(ns, ""))).To(Succeed())
		message := eventuallyCondition(ctx, a, quellv1alpha1.ConditionReconciling, "ConfigMissing")
		Expect(message).To(ContainSubstring(k.name + ` "settings"`))
		expectCalm(ctx, ns, atRest)
		Expect(configHash(ctx, Default, a)).To(Equal(before))

		By("making another App, whose Pods could not start")
		waiting := create(ctx, newApp(ns, "waiting", minimal, roll))
		eventuallyCondition(ctx, waiting, quellv1alpha1.ConditionReconciling, "ConfigMissing")
		Expect(manager.writes(start, ns)).NotTo(ContainElement(HaveField("Resource", "deployments")))

		By("making the object")
		Expect(admin.Create(ctx, k.object(ns, "three"))).To(Succeed())
		converge(ctx, waiting)
		Eventually(ctx, func(g Gomega) { g.Expect(configHash(ctx, g, a)).NotTo(Equal(before)) }).Should(Succeed())
		converge(ctx, a)
		Expect(deployment(ctx, Default, waiting).Annotations).To(HaveKeyWithValue("deployment.kubernetes.io/revision", "1"))
	})

	It("say when the permission is taken away, and go on when it is back", func(ctx SpecContext) {
		before := configHash(ctx, Default, a)
		kubectl("delete", "-f", role)
		Eventually(ctx, func() bool { return mayRead(ctx, "", k.resource) }).Should(BeFalse())
		Expect(admin.Update(ctx, k.object(ns, "four"))).To(Succeed())
		eventuallyCondition(ctx, a, quellv1alpha1.ConditionStalled, "Forbidden")
		Expect(configHash(ctx, Default, a)).To(Equal(before))
		start := mark()
		awaitIdle(ctx)
		Expect(reads(start)).To(BeEmpty())

		kubectl("apply", "-f", role)
		Eventually(ctx, func(g Gomega) {
			touch(ctx, a)
			g.Expect(configHash(ctx, g, a)).NotTo(Equal(before))
		}).WithPolling(time.Second / 2).Should(Succeed())
		converge(ctx, a)
	})

	It("replace the Pods more and more rarely when the content changes all the time", func(ctx SpecContext) {
		for _, name := range []string{"other", "waiting"} {
			Expect(admin.Delete(ctx, newApp(ns, name))).To(Succeed())
		}
		start, begin := mark(), time.Now()
		for i := range 60 {
			Expect(admin.Update(ctx, k.object(ns, strconv.Itoa(i)))).To(Succeed())
		}
		awaitIdle(ctx)
		writes := manager.requests(start, to("deployments"), localcluster.Writes, func(r localcluster.Request) bool { return r.Name == a.Name })
		AddReportEntry("replacements for 60 changes", len(writes))
		// 20 are free, one more is each 3 s, and one that meets another version is sent again.
		Expect(len(writes)).To(BeNumerically("<=", 2*(21+int(time.Since(begin)/(3*time.Second)))))
	})

	It("are not followed when no App asks for it any more", func(ctx SpecContext) {
		change(ctx, a, func(a *quellv1alpha1.App) { a.Spec.ConfigFiles[0].OnChange = quellv1alpha1.ConfigIgnore })
		Eventually(ctx, func(g Gomega) { g.Expect(configHash(ctx, g, a)).To(BeEmpty()) }).Should(Succeed())
		converge(ctx, a)
		start := mark()
		Expect(admin.Update(ctx, k.object(ns, "five"))).To(Succeed())
		expectCalm(ctx, ns, atRest)
		Expect(reads(start)).To(BeEmpty())
	})
}

// configHash is what the Pods of an App carry, "" for nothing.
func configHash(ctx context.Context, g Gomega, a *quellv1alpha1.App) string {
	return deployment(ctx, g, a).Spec.Template.Annotations[app.AnnotationConfigHash]
}

func patchMeta(ctx context.Context, o client.Object, patch string) {
	GinkgoHelper()
	Expect(admin.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
}

// mayRead asks whether the operator may read a resource of an API group.
func mayRead(ctx context.Context, group, resource string) bool {
	GinkgoHelper()
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Group: group, Resource: resource},
	}}
	Expect(clientAs(manager.config, "rights").Create(ctx, review)).To(Succeed())
	return review.Status.Allowed
}
