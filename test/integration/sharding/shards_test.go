package sharding_test

import (
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/app"
	"github.com/hduolab/quell/test/localcluster"
)

// each is how many Apps each of the shards gets.
const each = 20

var _ = Describe("Shards", Ordered, func() {
	var (
		apps []*quellv1alpha1.App
		// leaders are the processes that work, by shard; b has a standby.
		leaders = map[string]*process{}
	)
	of := func(shard string, n int) *quellv1alpha1.App {
		return apps[slices.Index([]string{"", "a", "b"}, shard)*each+n]
	}

	BeforeAll(func(ctx SpecContext) {
		for _, shard := range []string{"", "a", "b"} {
			for n := range each {
				apps = append(apps, newApp(ctx, fmt.Sprintf("shop-%s%02d", shard, n), shard))
			}
			if shard != "" {
				install(shard)
			}
			leaders[shard] = start(shard)
		}
		converge(ctx, apps...)
	})

	It("work on their own Apps: no object is written by two of them, and one looks after StormWatches", func(ctx SpecContext) {
		writers := map[string]map[string]bool{}
		for _, r := range writes(0) {
			Expect(r.Code).To(BeNumerically("<", 400), "%+v", r)
			key := r.Resource + "/" + r.Name
			if writers[key] == nil {
				writers[key] = map[string]bool{}
			}
			writers[key][shardOf(r)] = true
		}
		for _, a := range apps {
			for _, resource := range []string{"apps", "deployments", "services"} {
				Expect(writers[resource+"/"+a.Name]).To(Equal(map[string]bool{a.Labels[app.LabelShard]: true}), "%s of %s", resource, a.Name)
			}
		}
		tell("writes by shard", fmt.Sprint(perShard(writes(0))))
		Expect(requests(0, func(r localcluster.Request) bool { return r.Resource == "stormwatches" })).To(
			And(Not(BeEmpty()), HaveEach(WithTransform(shardOf, BeEmpty()))))
		expectQuiet(ctx)
	})

	DescribeTable("hand an App over with one write for each child and none to its status, and leave it as it was", func(ctx SpecContext, from, to string) {
		a := of(from, 0)
		d, s, err := children(ctx, a)
		Expect(err).NotTo(HaveOccurred())
		since := mark()
		move(a, to)
		Eventually(ctx, func() error { return areIn(ctx, a, to) }).Should(Succeed())
		expectQuiet(ctx)
		sent := writes(since)
		tell("writes for a move by shard", fmt.Sprint(perShard(sent)))
		Expect(perShard(sent)).To(Equal(map[string]int{to: 2}), localcluster.Summary(sent))
		movedD, movedS, err := children(ctx, a)
		Expect(err).NotTo(HaveOccurred())
		Expect([]any{movedD.UID, movedD.Generation, movedS.UID}).To(Equal([]any{d.UID, d.Generation, s.UID}))
		Expect(managers(movedD)).To(Equal(managers(d)))
		Expect(managers(movedS)).To(Equal(managers(s)))
	},
		Entry("from one shard to another", "a", "b"),
		Entry("from a shard to the default", "b", ""),
		Entry("from the default to a shard", "", "a"),
	)

	It("lose no child that the App gives up as it moves", func(ctx SpecContext) {
		a := of("a", 1)
		change(ctx, a, func(a *quellv1alpha1.App) {
			a.Spec.ServiceAccount = &quellv1alpha1.AppServiceAccount{Name: "shop-old", Create: new(true)}
		})
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: "shop-old"}}
		Eventually(ctx, func() error { return admin.Get(ctx, client.ObjectKeyFromObject(account), account) }).Should(Succeed())
		converge(ctx, a)
		since := mark()
		change(ctx, a, func(a *quellv1alpha1.App) {
			a.Labels[app.LabelShard], a.Spec.Ports, a.Spec.ServiceAccount.Name = "b", nil, "shop-new"
		})
		Eventually(ctx, func() bool {
			_, _, err := children(ctx, a)
			return apierrors.IsNotFound(err)
		}).Should(BeTrue(), "the Service is removed")

		By("keeping an account while Pods may still run with it, and removing it after the rollout")
		Eventually(ctx, func() string {
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(account), account)).To(Succeed())
			return account.Labels[app.LabelShard]
		}).Should(Equal("b"))
		finishRollout(ctx, a)
		Eventually(ctx, func() bool {
			return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(account), account))
		}).Should(BeTrue())
		sent := writes(since)
		tell("writes for a move in which a Service, an account and a new revision change", fmt.Sprint(perShard(sent)))
		Expect(perShard(sent)).To(HaveLen(1), localcluster.Summary(sent))
		Expect(len(sent)).To(BeNumerically("<=", 12), localcluster.Summary(sent))
	})

	It("take a child along that came to a shard as a thing to be removed and is wanted again", func(ctx SpecContext) {
		account := func(name string) func(*quellv1alpha1.App) {
			return func(a *quellv1alpha1.App) {
				a.Spec.ServiceAccount = &quellv1alpha1.AppServiceAccount{Name: name, Create: new(true)}
			}
		}
		a := newApp(ctx, "shop", "a")
		change(ctx, a, account("shop-old"))
		DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, a)).To(Succeed()) })
		converge(ctx, a)
		kept := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: "shop-old"}}
		label := func() string {
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(kept), kept)).To(Succeed())
			return kept.Labels[app.LabelShard]
		}
		change(ctx, a, func(a *quellv1alpha1.App) {
			a.Labels[app.LabelShard] = "b"
			account("shop-new")(a)
		})
		Eventually(ctx, label).Should(Equal("b"), "it is kept while Pods may run with it")
		change(ctx, a, account("shop-old"))
		converge(ctx, a)
		move(a, "")
		Eventually(ctx, label).Should(BeEmpty())
		converge(ctx, a)
		expectQuiet(ctx)
	})

	It("leave an App alone whose shard nobody runs, until somebody does", func(ctx SpecContext) {
		a := of("a", 2)
		since := mark()
		change(ctx, a, func(a *quellv1alpha1.App) { a.Labels[app.LabelShard], a.Spec.Image = "c", image(2) })
		expectQuiet(ctx)
		Expect(writes(since)).To(BeEmpty())
		Expect(areIn(ctx, a, "a")).To(MatchError(ContainSubstring("generation 2, status of 1")))
		install("c")
		start("c")
		converge(ctx, a)
		Expect(perShard(writes(since))).To(HaveLen(1))
	})

	It("go on without each other: a standby takes over a dead leader's Apps once its Lease has expired", func(ctx SpecContext) {
		By("moving an App from b to a, for which b has a last write under way")
		late := of("b", 3)
		change(ctx, late, func(a *quellv1alpha1.App) { a.Labels[app.LabelShard], a.Spec.Ports = "a", nil })
		Eventually(ctx, func() bool {
			_, _, err := children(ctx, late)
			return apierrors.IsNotFound(err)
		}).Should(BeTrue())
		stray := strayService(late)
		Expect(admin.Create(ctx, stray, client.FieldOwner(app.ChildManager))).To(Succeed())

		By("killing the leader of b")
		dead := leads(ctx, "b")
		started := mark()
		start("b")
		isUp(ctx, "b", started)
		leaders["b"].kill()
		killed := time.Now()
		for _, a := range []*quellv1alpha1.App{of("", 4), of("a", 4), of("b", 4)} {
			change(ctx, a, func(a *quellv1alpha1.App) { a.Spec.Image = image(3) })
		}
		converge(ctx, of("", 4), of("a", 4))
		tell("others went on after", time.Since(killed).Round(time.Second))
		converge(ctx, of("b", 4))
		tell("taken over after (a Lease lasts 15 s, a standby looks each 2 s)", time.Since(killed).Round(time.Second))
		Expect(leads(ctx, "b")).NotTo(Equal(dead))

		By("looking for what b did late")
		Eventually(ctx, func() bool { return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(stray), stray)) }).Should(BeTrue())
	})
})

// strayService is a Service as shard b would have made it for an App.
func strayService(a *quellv1alpha1.App) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: a.Namespace, Name: a.Name, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(a, quellv1alpha1.SchemeGroupVersion.WithKind("App"))},
			Labels: map[string]string{app.LabelManagedBy: app.ManagedBy, app.LabelName: a.Name, app.LabelInstance: a.Name, app.LabelShard: "b"},
		},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

// managers are the field managers of an object.
func managers(o client.Object) []string {
	var names []string
	for _, e := range o.GetManagedFields() {
		names = append(names, fmt.Sprint(e.Manager, " ", e.Operation, " ", e.Subresource))
	}
	slices.Sort(names)
	return names
}

// finishRollout says of an App's Deployment what its controller would when all Pods are new.
func finishRollout(ctx SpecContext, a *quellv1alpha1.App) {
	GinkgoHelper()
	var generation int64
	Eventually(ctx, func(g Gomega) {
		d, _, err := children(ctx, a)
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "the Service is gone")
		g.Expect(d.Spec.Template.Spec.ServiceAccountName).To(Equal("shop-new"))
		generation = d.Generation
	}).Should(Succeed())
	d, _, _ := children(ctx, a)
	patch := fmt.Sprintf(`{"status":{"observedGeneration":%d,"replicas":2,"updatedReplicas":2,"readyReplicas":2,"availableReplicas":2}}`, generation)
	Expect(admin.Status().Patch(ctx, d, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
}
