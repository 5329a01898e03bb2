package ssa_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hduolab/quell/controller/ssa"
	"github.com/hduolab/quell/test/localcluster"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/applyconfigurations"
	autoscalingv1ac "k8s.io/client-go/applyconfigurations/autoscaling/v1"
	autoscalingv2ac "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

const former = "quell-test-of-old"

func formerly(o *ssa.StatusOptions) { o.FormerManagers = []string{former} }

// trimmed is an object as a cache has it that drops what managers own.
func trimmed(u *unstructured.Unstructured) *unstructured.Unstructured {
	u = u.DeepCopy()
	entries := u.GetManagedFields()
	for i := range entries {
		entries[i].FieldsV1 = nil
	}
	u.SetManagedFields(entries)
	return u
}

func stripped(u *unstructured.Unstructured) *unstructured.Unstructured {
	u = u.DeepCopy()
	u.SetManagedFields(nil)
	return u
}

var _ = Describe("fields owned under another name", func() {
	update := func(manager string) func(SpecContext, string, content) {
		return func(ctx SpecContext, name string, s content) {
			updateStatus(ctx, manager, name, func(live content) {
				for k, v := range s {
					live[k] = v
				}
			})
		}
	}
	applied := func(ctx SpecContext, name string, s content) { forceStatus(ctx, former, status(name, s)) }
	both := func(ctx SpecContext, name string, s content) {
		applied(ctx, name, content{"s": s["s"], "l": s["l"]})
		update(former)(ctx, name, content{"i": s["i"]})
		update(me)(ctx, name, content{"b": s["b"]})
	}
	DescribeTable("are taken over once, so that they can be removed",
		func(ctx SpecContext, before func(SpecContext, string, content), seen func(*unstructured.Unstructured) *unstructured.Unstructured) {
			clock, name := newClock(), newThing(ctx)
			forceStatus(ctx, they, status(name, content{"j": 7, "tags": []any{"t"}}))
			before(ctx, name, content{"s": "old", "i": int64(1), "l": int64(2), "b": true})
			theirs := entriesOf(fetchThing(ctx, name), they, "creator")
			w := newWriter(clock, formerly)
			result := write(ctx, w, status(name, content{"s": "new"}), seen(fetchThing(ctx, name)))
			Expect(result.Migrated).To(BeTrue())
			Expect(result.Wrote()).To(BeTrue())
			Expect(wire.requests()).To(HaveLen(3), "read, take over, apply")
			live := fetchThing(ctx, name)
			Expect(field(live, "status")).To(Equal(content{"s": "new", "j": int64(7), "tags": []any{"t"}, "defaulted": "blue"}))
			Expect(managers(live)).To(ConsistOf(me+"/Apply/status", they+"/Apply/status", "creator/Update/"))
			Expect(entriesOf(live, they, "creator")).To(Equal(theirs))
			Expect(write(ctx, w, status(name, content{"s": "new"}), seen(live)).Sent).To(BeFalse())
			Expect(write(ctx, w, status(name, content{"s": "new"}), live).Migrated).To(BeFalse())
			quiet(ctx, live)
		},
		Entry("by an update under our own name", update(me), asIs),
		Entry("by an update under a former name", update(former), asIs),
		Entry("by an apply under a former name", applied, asIs),
		Entry("by applies and updates under both names", both, asIs),
		Entry("although the cache has trimmed managedFields", both, trimmed),
	)

	It("are taken over without an apply when nothing else differs, and a cache that is behind costs nothing", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		forceStatus(ctx, former, status(name, content{"s": "same"}))
		old := fetchThing(ctx, name)
		w := newWriter(clock, formerly)
		result := write(ctx, w, status(name, content{"s": "same"}), old)
		Expect(result.Migrated).To(BeTrue())
		Expect(result.Outcome).To(Equal(ssa.Unchanged))
		Expect(result.Wrote()).To(BeTrue())
		Expect(wire.requests()).To(HaveLen(2))
		live := fetchThing(ctx, name)
		Expect(result.Object.GetResourceVersion()).To(Equal(live.GetResourceVersion()))
		for range 3 {
			Expect(write(ctx, w, status(name, content{"s": "same"}), old).Sent).To(BeFalse())
		}
		quiet(ctx, live)
	})

	It("are not taken over from a version that changed meanwhile", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		forceStatus(ctx, former, status(name, content{"s": "old", "i": 1}))
		live := fetchThing(ctx, name)
		wire.breakWith(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			if r.Header.Get("Content-Type") == string(types.JSONPatchType) {
				wire.heal()
				forceStatus(ctx, they, status(name, content{"j": 1}))
			}
			return next.RoundTrip(r)
		})
		w := newWriter(clock, formerly)
		result := write(ctx, w, status(name, content{"s": "new"}), live)
		Expect(result.Migrated).To(BeFalse())
		after := fetchThing(ctx, name)
		Expect(managers(after)).To(ContainElements(they+"/Apply/status", former+"/Apply/status"))
		Expect(write(ctx, w, status(name, content{"s": "new"}), after).Migrated).To(BeTrue(), "the next call does it")
		after = fetchThing(ctx, name)
		Expect(managers(after)).To(ConsistOf(me+"/Apply/status", they+"/Apply/status", "creator/Update/"))
		Expect(field(after, "status")).To(Equal(content{"s": "new", "j": int64(1), "defaulted": "blue"}))
	})

	It("need get and patch on the object itself, beside patch on the status", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		forceStatus(ctx, former, status(name, content{"s": "old", "i": 1}))
		c := restricted(ctx, "taker", rule("things", "get", "patch"), rule("things/status", "patch"))
		w := newWriter(clock, formerly, func(o *ssa.StatusOptions) { o.Client, o.Reader = c, c })
		Eventually(func(g Gomega) { // RBAC takes a moment to be in force
			result, err := w.Write(ctx, ssa.Intent{Desired: status(name, content{"s": "new"}), Live: fetchThing(ctx, name)})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(result.Migrated).To(BeTrue())
		}).Should(Succeed())
		Expect(field(fetchThing(ctx, name), "status")).To(Equal(content{"s": "new", "defaulted": "blue"}))
	})

	It("stay as they are where patching the object itself is forbidden, which is said once", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		forceStatus(ctx, former, status(name, content{"s": "old", "i": 1}))
		c := restricted(ctx, "writer", rule("things", "get"), rule("things/status", "patch"))
		Eventually(func() error { // RBAC takes a moment to be in force
			return c.Status().Apply(ctx, status(newName(), content{"s": "a"}).copied(), client.FieldOwner(me))
		}).Should(MatchError(apierrors.IsNotFound, "not found"))
		var log strings.Builder
		w := newWriter(clock, formerly, func(o *ssa.StatusOptions) { o.Client, o.Reader = c, c })
		before, err := cluster.Mark()
		Expect(err).NotTo(HaveOccurred())
		for _, s := range []string{"1", "2", "3"} {
			result, err := w.Write(logf.IntoContext(ctx, zap.New(zap.WriteTo(&log))), ssa.Intent{Desired: status(name, content{"s": s}), Live: fetchThing(ctx, name)})
			Expect(err).NotTo(HaveOccurred())
			Expect(result.Outcome).To(Equal(ssa.Applied))
			Expect(result.Migrated).To(BeFalse())
		}
		Expect(field(fetchThing(ctx, name), "status")).To(Equal(content{"s": "3", "i": int64(1), "defaulted": "blue"}))
		Expect(strings.Count(log.String(), "cannot be taken over")).To(Equal(1))
		requests, err := cluster.Requests(before, localcluster.ByUser("writer"))
		Expect(err).NotTo(HaveOccurred())
		Expect(requests).To(HaveLen(2+3), "read and refused patch once, three applies")
	})

	It("on the object itself are taken over too, those of the status are left", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		forceStatus(ctx, former, status(name, content{"s": "old"}))
		sized := func(s content) config { return object("Thing", name, content{"spec": s}) }
		Expect(admin.Apply(ctx, sized(content{"size": 2, "color": "red"}).copied(), client.FieldOwner(former), client.ForceOwnership)).To(Succeed())
		a := newApplier(clock, func(o *ssa.Options) { o.FormerManagers = []string{former, "creator"} })
		Expect(apply(ctx, a, sized(content{"size": 3}), fetchThing(ctx, name)).Migrated).To(BeTrue())
		live := fetchThing(ctx, name)
		Expect(field(live, "spec")).To(Equal(content{"size": int64(3), "color": "blue"}))
		Expect(managers(live)).To(ConsistOf(me+"/Apply/", former+"/Apply/status"))
	})
})

func asIs(u *unstructured.Unstructured) *unstructured.Unstructured { return u }

func entriesOf(u *unstructured.Unstructured, names ...string) []metav1.ManagedFieldsEntry {
	var entries []metav1.ManagedFieldsEntry
	for _, e := range u.GetManagedFields() {
		for _, n := range names {
			if e.Manager == n {
				entries = append(entries, e)
			}
		}
	}
	return entries
}

func rule(resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{"test.quell.dev"}, Resources: []string{resource}, Verbs: verbs}
}

// restricted is a client of a user with these rights alone.
func restricted(ctx SpecContext, user string, rules ...rbacv1.PolicyRule) client.Client {
	GinkgoHelper()
	meta := metav1.ObjectMeta{Name: user}
	Expect(admin.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules})).To(Succeed())
	Expect(admin.Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}})).To(Succeed())
	cfg, err := cluster.User(user)
	Expect(err).NotTo(HaveOccurred())
	return newClient(cfg)
}

var _ = Describe("a cache without managedFields", func() {
	It("costs one request per object, says so once, and values are still repaired", func(ctx SpecContext) {
		clock := newClock()
		var log strings.Builder
		logged := logf.IntoContext(ctx, zap.New(zap.WriteTo(&log)))
		w := newWriter(clock)
		write := func(s content, live *unstructured.Unstructured) ssa.Result {
			GinkgoHelper()
			result, err := w.Write(logged, ssa.Intent{Desired: status(live.GetName(), s), Live: live})
			Expect(err).NotTo(HaveOccurred())
			return result
		}
		names := []string{newThing(ctx), newThing(ctx)}
		for _, name := range names {
			written(ctx, newWriter(clock), name, readyIs("True"))
		}
		wire.requests()
		for _, name := range names {
			before := fetchThing(ctx, name)
			Expect(write(readyIs("True"), stripped(before)).Outcome).To(Equal(ssa.NoOp), "after a restart")
			Expect(wire.requests()).To(HaveLen(1))
			for i := range 10 {
				other := fetchThing(ctx, name)
				other.SetLabels(map[string]string{"round": fmt.Sprint(i)})
				Expect(admin.Update(ctx, other)).To(Succeed())
				clock.Step(1100 * time.Millisecond)
				Expect(write(readyIs("True"), stripped(fetchThing(ctx, name))).Outcome).To(Equal(ssa.Unchanged))
			}
			Expect(wire.requests()).To(BeEmpty())
			By("repairing a value")
			updateStatus(ctx, they, name, func(s content) { s["s"] = "theirs" })
			result := write(readyIs("True"), stripped(fetchThing(ctx, name)))
			Expect(result.String()).To(Equal("Applied: .status.s changed"))
			updateStatus(ctx, they, name, func(s content) { delete(s, "s") })
			Expect(write(readyIs("True"), stripped(fetchThing(ctx, name))).Outcome).To(Equal(ssa.Applied))
			Expect(field(fetchThing(ctx, name), "status", "s")).To(Equal("True"))
			Expect(write(readyIs("True"), stripped(fetchThing(ctx, name))).Outcome).To(Equal(ssa.Unchanged))
			By("writing other content")
			Expect(write(readyIs("False"), stripped(fetchThing(ctx, name))).Outcome).To(Equal(ssa.Applied))
			Expect(write(readyIs("False"), stripped(fetchThing(ctx, name))).Outcome).To(Equal(ssa.Unchanged))
			Expect(wire.requests()).To(HaveLen(3))
		}
		Expect(strings.Count(log.String(), "without metadata.managedFields")).To(Equal(1), log.String())
		families, err := metrics.Registry.Gather()
		Expect(err).NotTo(HaveOccurred())
		Expect(families).To(ContainElement(HaveField("GetName()", "quell_ssa_cache_without_managed_fields")))
	})
})

var _ = Describe("a kind with two served versions", Ordered, func() {
	versioned := func(version, name string) config {
		c := object("Twin", name, content{"status": content{"s": "a"}})
		c["apiVersion"] = "test.quell.dev/" + version
		return c
	}
	var name, orphaned string
	var old *unstructured.Unstructured

	It("is bounded when one manager alternates between them, and says so", func(ctx SpecContext) {
		name := newObject(ctx, "Twin")
		clock := newClock()
		w := newWriter(clock)
		var held ssa.Result
		for i := range 100 {
			clock.Step(100 * time.Millisecond)
			version := []string{"v1", "v1beta1"}[i%2]
			live := fetch(ctx, "Twin", name)
			live.SetAPIVersion("test.quell.dev/" + version) // both have the same fields
			if result := write(ctx, w, versioned(version, name), live); result.Held() {
				held = result
			}
		}
		Expect(held.String()).To(Equal("SelfChurn: .apiVersion changed"))
		Expect(len(wire.requests())).To(BeNumerically("<=", 1+ssa.DefaultChurnPace.Free+4))
	})

	It("has fields taken over from a former manager that used the other", func(ctx SpecContext) {
		name := newObject(ctx, "Twin")
		old := object("Twin", name, content{"status": content{"s": "old", "i": 1}})
		old["apiVersion"] = "test.quell.dev/v1beta1"
		Expect(admin.Status().Apply(ctx, old.copied(), client.FieldOwner(former))).To(Succeed())
		w := newWriter(newClock(), formerly)
		Expect(write(ctx, w, object("Twin", name, content{"status": content{"s": "new"}}), fetch(ctx, "Twin", name)).Migrated).To(BeTrue())
		live := fetch(ctx, "Twin", name)
		Expect(field(live, "status")).To(Equal(content{"s": "new"}))
		Expect(managers(live)).To(ConsistOf(me + "/Apply/status"))
	})

	It("is refused when what is read is of another version than what is applied", func(ctx SpecContext) {
		name := newObject(ctx, "Twin")
		_, err := newWriter(newClock()).Write(ctx, ssa.Intent{Desired: versioned("v1beta1", name), Live: fetch(ctx, "Twin", name)})
		Expect(err).To(terminal("test.quell.dev/v1beta1", "test.quell.dev/v1,", "same version"))
	})

	It("of which a former manager used one that is not served any more", func(ctx SpecContext) {
		orphaned = newObject(ctx, "Twin")
		old := with(versioned("v1beta1", orphaned), "status", any(content{"s": "old", "i": 1}))
		Expect(admin.Status().Apply(ctx, old.copied(), client.FieldOwner(former))).To(Succeed())
	})

	It("of which one is not served any more is a terminal error that names the entry", func(ctx SpecContext) {
		name = newObject(ctx, "Twin")
		Expect(admin.Status().Apply(ctx, versioned("v1beta1", name).copied(), client.FieldOwner(they))).To(Succeed())
		old = fetch(ctx, "Twin", name)
		old.SetAPIVersion("test.quell.dev/v1beta1")
		dropVersion(ctx, "twins.test.quell.dev")
		w := newWriter(newClock())
		desired := object("Twin", name, content{"status": content{"i": 1}})
		var err error
		Eventually(func() error { // the change takes a moment to be in force
			_, err = w.Write(ctx, ssa.Intent{Desired: with(desired, "status", any(content{"i": serial.Add(1)})), Live: fetch(ctx, "Twin", name), Inputs: newName()})
			return err
		}).Should(HaveOccurred())
		Expect(ssa.IsTerminal(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring(`the managedFields entry of "rival" (Apply, status) names test.quell.dev/v1beta1`)))
	})

	It("heals when the entry is removed as the error says", func(ctx SpecContext) {
		var kept []metav1.ManagedFieldsEntry
		live := fetch(ctx, "Twin", name)
		for _, e := range live.GetManagedFields() {
			if e.APIVersion == "test.quell.dev/v1" {
				kept = append(kept, e)
			}
		}
		if kept == nil {
			kept = []metav1.ManagedFieldsEntry{{}}
		}
		raw, err := json.Marshal([]content{{"op": "replace", "path": "/metadata/managedFields", "value": kept}})
		Expect(err).NotTo(HaveOccurred())
		Expect(admin.Patch(ctx, live, client.RawPatch(types.JSONPatchType, raw))).To(Succeed())
		Expect(write(ctx, newWriter(newClock()), object("Twin", name, content{"status": content{"i": 1}}), fetch(ctx, "Twin", name)).Outcome).To(Equal(ssa.Applied))
	})

	It("has fields taken over from a former manager that used the one that is gone", func(ctx SpecContext) {
		desired := object("Twin", orphaned, content{"status": content{"s": "new"}})
		Expect(write(ctx, newWriter(newClock(), formerly), desired, fetch(ctx, "Twin", orphaned)).Migrated).To(BeTrue())
		live := fetch(ctx, "Twin", orphaned)
		Expect(field(live, "status")).To(Equal(content{"s": "new"}))
		Expect(managers(live)).To(ConsistOf(me + "/Apply/status"))
	})

	It("is an error, not Gone, for a writer of the version that is gone", func(ctx SpecContext) {
		_, err := newWriter(newClock()).Write(ctx, ssa.Intent{Desired: versioned("v1beta1", name), Live: old})
		Expect(err).To(HaveOccurred())
		Expect(ssa.IsTerminal(err)).To(BeFalse())
	})
})

// behavior is the annotation that autoscaling/v1 has for what is spec.behavior in autoscaling/v2.
const behavior = "autoscaling.alpha.kubernetes.io/behavior"

// scaler is an autoscaler in autoscaling/v1 that scales down after a minute, scaler2 one in autoscaling/v2 that does so after some seconds.
func scaler(name string) *autoscalingv1ac.HorizontalPodAutoscalerApplyConfiguration {
	target := autoscalingv1ac.CrossVersionObjectReference().WithAPIVersion("apps/v1").WithKind("Deployment").WithName(name)
	return autoscalingv1ac.HorizontalPodAutoscaler(name, namespace).
		WithAnnotations(map[string]string{behavior: `{"ScaleDown":{"StabilizationWindowSeconds":60,` +
			`"SelectPolicy":"Max","Policies":[{"Type":"Percent","Value":100,"PeriodSeconds":15}]}}`}).
		WithSpec(autoscalingv1ac.HorizontalPodAutoscalerSpec().WithMinReplicas(2).WithMaxReplicas(5).WithScaleTargetRef(target))
}

func scaler2(name string, seconds ...int32) *autoscalingv2ac.HorizontalPodAutoscalerApplyConfiguration {
	target := autoscalingv2ac.CrossVersionObjectReference().WithAPIVersion("apps/v1").WithKind("Deployment").WithName(name)
	spec := autoscalingv2ac.HorizontalPodAutoscalerSpec().WithMaxReplicas(5).WithScaleTargetRef(target)
	for _, s := range seconds {
		spec.WithBehavior(autoscalingv2ac.HorizontalPodAutoscalerBehavior().
			WithScaleDown(autoscalingv2ac.HPAScalingRules().WithStabilizationWindowSeconds(s)))
	}
	return autoscalingv2ac.HorizontalPodAutoscaler(name, namespace).WithSpec(spec)
}

func fetchScaler(ctx SpecContext, name string) *autoscalingv2.HorizontalPodAutoscaler {
	GinkgoHelper()
	h := &autoscalingv2.HorizontalPodAutoscaler{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, h)).To(Succeed())
	return h
}

// window is after how many seconds an autoscaler scales down, nil when it does not say.
func window(h *autoscalingv2.HorizontalPodAutoscaler) *int32 {
	if h.Spec.Behavior == nil || h.Spec.Behavior.ScaleDown == nil {
		return nil
	}
	return h.Spec.Behavior.ScaleDown.StabilizationWindowSeconds
}

var _ = Describe("a kind whose fields have other names in another version", func() {
	taker := func() *ssa.Applier {
		return newApplier(newClock(), func(o *ssa.Options) {
			o.Types, o.FormerManagers = applyconfigurations.NewTypeConverter(scheme), []string{former}
		})
	}
	created := func(ctx SpecContext, name string) {
		Expect(admin.Create(ctx, &autoscalingv1.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Annotations: scaler(name).Annotations},
			Spec: autoscalingv1.HorizontalPodAutoscalerSpec{MinReplicas: ptr.To[int32](2), MaxReplicas: 5,
				ScaleTargetRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name}},
		}, client.FieldOwner(former))).To(Succeed())
	}
	applied := func(ctx SpecContext, name string) {
		Expect(admin.Apply(ctx, scaler(name), client.FieldOwner(former))).To(Succeed())
	}
	DescribeTable("has them taken over from a former manager that used the other",
		func(ctx SpecContext, before func(SpecContext, string), seconds []int32, after OmegaMatcher) {
			a, name := taker(), newName()
			before(ctx, name)
			result := apply(ctx, a, scaler2(name, seconds...), fetchScaler(ctx, name))
			Expect(result.Migrated).To(BeTrue())
			live := fetchScaler(ctx, name)
			Expect(window(live)).To(after)
			Expect(live.Spec.MinReplicas).To(HaveValue(BeEquivalentTo(1)), "the default, since it is not wanted any more")
			Expect(wire.requests()).To(HaveLen(4), "read in both versions, take over, apply")
			Expect(live.ManagedFields).To(HaveLen(1))
			Expect(live.ManagedFields[0]).To(And(HaveField("Manager", me), HaveField("APIVersion", "autoscaling/v2")))
			for _, a := range []*ssa.Applier{a, taker()} {
				Expect(apply(ctx, a, scaler2(name, seconds...), live).Outcome).To(Equal(ssa.Unchanged))
			}
			Expect(wire.requests()).To(BeEmpty())
		},
		Entry("by applies, and are removed", applied, nil, BeNil()),
		Entry("by updates, and are removed", created, nil, BeNil()),
		Entry("by applies, and are stated anew", applied, []int32{90}, HaveValue(BeEquivalentTo(90))),
		Entry("by updates, and keep their value", created, []int32{60}, HaveValue(BeEquivalentTo(60))),
	)

	It("has them left to nobody where we own fields in the one already", func(ctx SpecContext) {
		name := newName()
		applied(ctx, name)
		apply(ctx, newBuiltin(), scaler2(name), fetchScaler(ctx, name))
		wire.requests()
		Expect(apply(ctx, taker(), scaler2(name), fetchScaler(ctx, name)).Migrated).To(BeTrue())
		Expect(wire.requests()).To(HaveLen(3), "read, take over, apply")
		live := fetchScaler(ctx, name)
		Expect(window(live)).To(HaveValue(BeEquivalentTo(60)), "which is nobody's")
		Expect(live.Spec.MinReplicas).To(HaveValue(BeEquivalentTo(1)))
		Expect(live.ManagedFields).To(HaveLen(1))
		Expect(apply(ctx, taker(), scaler2(name), live).Outcome).To(Equal(ssa.Unchanged))
		Expect(apply(ctx, taker(), scaler2(name, 70), live).Outcome).To(Equal(ssa.Applied), "once it is said what it is to be")
		Expect(window(fetchScaler(ctx, name))).To(HaveValue(BeEquivalentTo(70)))
	})
})

// dropVersion takes the version that is not stored out of a CustomResourceDefinition.
func dropVersion(ctx SpecContext, name string) {
	GinkgoHelper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	Expect(admin.Get(ctx, client.ObjectKey{Name: name}, crd)).To(Succeed())
	crd.Spec.Versions = slices.DeleteFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return !v.Storage })
	Expect(admin.Update(ctx, crd)).To(Succeed())
}
