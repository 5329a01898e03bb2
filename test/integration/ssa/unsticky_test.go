package ssa_test

import (
	"fmt"
	"time"

	"github.com/hduolab/quell/controller/ssa"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("content that does not stick", func() {
	pruned := func() content {
		return content{"s": "a", "embedded": content{"name": "x", "metadata": content{"labels": content{"a": "b"}}}}
	}
	path := ".status.embedded.metadata"

	It("because the schema prunes it is sent once, and tried again when the schema changed", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		w := newWriter(clock)
		result := write(ctx, w, status(name, pruned()), fetchThing(ctx, name))
		Expect(result.Outcome).To(Equal(ssa.DoesNotStick))
		Expect(result.Sent).To(BeTrue())
		Expect(result.Paths()).To(HaveExactElements(HavePrefix(path)))
		Expect(wire.requests()).To(HaveLen(1))
		live := fetchThing(ctx, name)
		for range 3 {
			clock.Step(time.Hour)
			again := write(ctx, w, status(name, pruned()), live)
			Expect(again.Outcome).To(Equal(ssa.DoesNotStick))
			Expect(again.Sent).To(BeFalse())
			Expect(again.Paths()).To(Equal(result.Paths()))
		}
		quiet(ctx, live)

		By("being quiet although the object has a new version")
		live.SetLabels(map[string]string{"a": "b"})
		Expect(admin.Update(ctx, live)).To(Succeed())
		Expect(write(ctx, w, status(name, pruned()), live).Outcome).To(Equal(ssa.DoesNotStick))
		quiet(ctx, live)

		By("trying again when told that the schema changed, once")
		w.SchemaChanged()
		Expect(write(ctx, w, status(name, pruned()), live).Sent).To(BeTrue())
		live = fetchThing(ctx, name)
		Expect(write(ctx, w, status(name, pruned()), live).Sent).To(BeFalse())
		Expect(wire.requests()).To(HaveLen(1))
	})

	It("does not keep other paths of the same content from being repaired", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		w := newWriter(clock)
		write(ctx, w, status(name, pruned()), fetchThing(ctx, name))
		forceStatus(ctx, they, status(name, content{"s": "theirs"}))
		wire.requests()
		Expect(write(ctx, w, status(name, pruned()), fetchThing(ctx, name)).Sent).To(BeTrue())
		live := fetchThing(ctx, name)
		Expect(field(live, "status", "s")).To(Equal("a"))
		Expect(write(ctx, w, status(name, pruned()), live).Sent).To(BeFalse())
		Expect(wire.requests()).To(HaveLen(1))
	})

	It("does not keep other content from being written", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		w := newWriter(clock)
		write(ctx, w, status(name, pruned()), fetchThing(ctx, name))
		other := pruned()
		other["s"] = "b"
		Expect(write(ctx, w, status(name, other), fetchThing(ctx, name)).Outcome).To(Equal(ssa.DoesNotStick))
		Expect(field(fetchThing(ctx, name), "status", "s")).To(Equal("b"))
		Expect(write(ctx, w, status(name, content{"s": "b"}), fetchThing(ctx, name)).Outcome).To(Equal(ssa.Applied))
		Expect(write(ctx, w, status(name, content{"s": "b"}), fetchThing(ctx, name)).Outcome).To(Equal(ssa.Unchanged))
		Expect(wire.requests()).To(HaveLen(3))
	})

	It("in a spec bumps the generation once, not for ever", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		a := newApplier(clock)
		desired := object("Thing", name, content{"spec": content{"size": 1, "embedded": content{"metadata": content{"labels": content{"a": "b"}}}}})
		Expect(apply(ctx, a, desired, fetchThing(ctx, name)).Outcome).To(Equal(ssa.DoesNotStick))
		live := fetchThing(ctx, name)
		for range 3 {
			Expect(apply(ctx, a, desired, live).Sent).To(BeFalse())
		}
		Expect(wire.requests()).To(HaveLen(1))
		Expect(fetchThing(ctx, name).GetGeneration()).To(Equal(live.GetGeneration()))
	})

	It("because an admission policy changes it is sent once, and tried again when told that the policy changed", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		remove := overwrite(ctx, name)
		w := newWriter(clock)
		Eventually(func() ssa.Outcome { // a policy takes a moment to be in force
			return write(ctx, w, status(name, content{"s": newName(), "i": 1}), fetchThing(ctx, name), newName()).Outcome
		}).Should(Equal(ssa.DoesNotStick))
		s := content{"s": "mine", "i": 1}
		result := write(ctx, w, status(name, s), fetchThing(ctx, name), newName())
		Expect(result.Outcome).To(Equal(ssa.DoesNotStick))
		Expect(result.Paths()).To(Equal([]string{".status.s"}))
		live := fetchThing(ctx, name)
		wire.requests()
		for range 3 {
			clock.Step(time.Hour)
			Expect(write(ctx, w, status(name, s), live).Outcome).To(Equal(ssa.DoesNotStick))
		}
		quiet(ctx, live)
		remove(ctx)
		Eventually(func() ssa.Outcome {
			clock.Step(time.Hour)
			w.SchemaChanged()
			return write(ctx, w, status(name, s), fetchThing(ctx, name)).Outcome
		}).Should(Equal(ssa.Applied))
		Expect(field(fetchThing(ctx, name), "status", "s")).To(Equal("mine"))
	})
})

// overwrite installs a policy that overwrites status.s of one Thing; the function that it returns removes it.
func overwrite(ctx SpecContext, name string) func(SpecContext) {
	GinkgoHelper()
	meta := metav1.ObjectMeta{Name: name}
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
		ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
		MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"test.quell.dev"}, APIVersions: []string{"*"}, Resources: []string{"things/status"}},
			},
		}}},
		MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "one", Expression: fmt.Sprintf("object.metadata.name == %q", name)}},
		Mutations: []admissionregistrationv1.Mutation{{
			PatchType:          admissionregistrationv1.PatchTypeApplyConfiguration,
			ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: `Object{status: Object.status{s: "policy"}}`},
		}},
	}}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name}}
	Expect(admin.Create(ctx, policy)).To(Succeed())
	Expect(admin.Create(ctx, binding)).To(Succeed())
	remove := func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(admin.Delete(ctx, binding))).To(Succeed())
		Expect(client.IgnoreNotFound(admin.Delete(ctx, policy))).To(Succeed())
	}
	DeferCleanup(remove)
	return remove
}
