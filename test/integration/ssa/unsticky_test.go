package ssa_test

import (
	"fmt"
	"strconv"
	"time"

	"github.com/hduolab/quell/controller/ssa"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/applyconfigurations"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
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

	DescribeTable("because an admission policy sorts a list at every write is sent once, and is no fight",
		func(ctx SpecContext, list, item, path string) {
			clock, name := newClock(), newName()
			sorted(ctx, name, list, item)
			a := newApplier(clock, func(o *ssa.Options) {
				o.Types, o.Recheck = applyconfigurations.NewTypeConverter(scheme), time.Hour
			})
			result := apply(ctx, a, deployment(name, unsorted()), nil)
			Expect(result.Outcome).To(Equal(ssa.DoesNotStick))
			Expect(result.Paths()).To(Equal([]string{path}))
			Expect(wire.requests()).To(HaveLen(1))
			for i := range 12 { // with a new version of the object each time, as any controller makes
				clock.Step(4 * time.Minute)
				live := update(ctx, they, fetchDeployment(ctx, name), func(d *appsv1.Deployment) { d.Labels["round"] = strconv.Itoa(i) })
				again := apply(ctx, a, deployment(name, unsorted()), live)
				Expect(again.Outcome).To(Equal(ssa.DoesNotStick), "%s", again)
				Expect(again.Paths()).To(Equal([]string{path}))
				Expect(again.Rivals()).To(BeEmpty())
			}
			Expect(wire.requests()).To(BeEmpty())

			By("trying again after the time for that, once")
			clock.Step(time.Hour)
			for range 3 {
				Expect(apply(ctx, a, deployment(name, unsorted()), fetchDeployment(ctx, name)).Outcome).To(Equal(ssa.DoesNotStick))
			}
			Expect(wire.requests()).To(HaveLen(1))

			By("repairing what others take meanwhile, once")
			update(ctx, they, fetchDeployment(ctx, name), func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "theirs" })
			for range 3 {
				Expect(apply(ctx, a, deployment(name, unsorted()), fetchDeployment(ctx, name)).Outcome).To(Equal(ssa.DoesNotStick))
			}
			Expect(fetchDeployment(ctx, name).Spec.Template.Spec.Containers[0].Image).To(Equal("nginx:1"))
			Expect(wire.requests()).To(HaveLen(1))
		},
		Entry("of environment variables", "env", ".name", ".spec.template.spec.containers"),
		Entry("of arguments", "args", "", `.spec.template.spec.containers[name="web"].args`),
	)
})

// overwrite installs a policy that overwrites status.s of one Thing; the function that it returns removes it.
func overwrite(ctx SpecContext, name string) func(SpecContext) {
	GinkgoHelper()
	return mutate(ctx, name, "test.quell.dev", "things/status", admissionregistrationv1.Mutation{
		PatchType:          admissionregistrationv1.PatchTypeApplyConfiguration,
		ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: `Object{status: Object.status{s: "policy"}}`},
	})
}

// sorted installs a policy that puts the two items of a list of a Deployment's container in order, and waits until it is in force. item is
// the part of an item that it goes by.
func sorted(ctx SpecContext, name, list, item string) {
	GinkgoHelper()
	path := "/spec/template/spec/containers/0/" + list
	mutate(ctx, name, "apps", "deployments", admissionregistrationv1.Mutation{
		PatchType: admissionregistrationv1.PatchTypeJSONPatch,
		JSONPatch: &admissionregistrationv1.JSONPatch{Expression: fmt.Sprintf(
			`object.spec.template.spec.containers[0].%[1]s[0]%[2]s > object.spec.template.spec.containers[0].%[1]s[1]%[2]s`+
				` ? [JSONPatch{op: "move", from: "%[3]s/1", path: "%[3]s/0"}] : []`, list, item, path)},
	})
	Eventually(func(g Gomega) {
		probe := &appsv1.Deployment{}
		g.Expect(admin.Apply(ctx, deployment(name, unsorted()), client.FieldOwner("probe"))).To(Succeed())
		g.Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, probe)).To(Succeed())
		g.Expect(admin.Delete(ctx, probe.DeepCopy())).To(Succeed())
		c := probe.Spec.Template.Spec.Containers[0]
		g.Expect([]string{c.Env[0].Name, c.Args[0]}).To(ContainElement("A"))
	}).WithContext(ctx).Should(Succeed())
}

func unsorted() *corev1ac.ContainerApplyConfiguration {
	return corev1ac.Container().WithName("web").WithImage("nginx:1").WithArgs("B", "A").
		WithEnv(corev1ac.EnvVar().WithName("B").WithValue("1"), corev1ac.EnvVar().WithName("A").WithValue("2"))
}

// mutate installs a policy for one object; the function that it returns removes it.
func mutate(ctx SpecContext, name, group, resource string, mutation admissionregistrationv1.Mutation) func(SpecContext) {
	GinkgoHelper()
	meta := metav1.ObjectMeta{Name: name}
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
		ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
		MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource}},
			},
		}}},
		MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "one", Expression: fmt.Sprintf("object.metadata.name == %q", name)}},
		Mutations:       []admissionregistrationv1.Mutation{mutation},
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
