package ssa_test

import (
	"time"

	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/hduolab/quell/controller/ssa"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("a rival", func() {
	DescribeTable("that changes our field once is repaired by one request, which says why",
		func(ctx SpecContext, strike func(ctx SpecContext, name string), reasons []string) {
			clock, name := newClock(), newThing(ctx)
			w := newWriter(clock)
			mine := content{"s": "mine", "i": 0, "conditions": []any{condition("Ready", "True", "Works", "")}}
			before := written(ctx, w, name, mine)
			clock.Step(1100 * time.Millisecond)
			strike(ctx, name)
			result := write(ctx, w, status(name, mine), fetchThing(ctx, name))
			Expect(result.Outcome).To(Equal(ssa.Applied))
			Expect(words(result)).To(Equal(reasons))
			Expect(wire.requests()).To(HaveLen(1))
			after := fetchThing(ctx, name)
			Expect(repaired(after)).To(Equal(repaired(before)))
			Expect(write(ctx, w, status(name, mine), after).Outcome).To(Equal(ssa.Unchanged))
			Expect(write(ctx, newWriter(clock), status(name, mine), after).Outcome).To(Equal(ssa.Unchanged))
			quiet(ctx, after)
		},
		Entry("by a forced apply", func(ctx SpecContext, name string) {
			forceStatus(ctx, they, status(name, content{"s": "theirs"}))
		}, []string{`.status.s taken by "rival" (Apply, status)`}),
		Entry("by an update", func(ctx SpecContext, name string) {
			updateStatus(ctx, they, name, func(s content) { s["s"] = "theirs" })
		}, []string{`.status.s taken by "rival" (Update, status)`}),
		Entry("by an update of a condition", func(ctx SpecContext, name string) {
			updateStatus(ctx, they, name, func(s content) { s["conditions"].([]any)[0].(content)["reason"] = "Theirs" })
		}, []string{`.status.conditions[type="Ready"].reason taken by "rival" (Update, status)`}),
		Entry("by removing it, without a trace", func(ctx SpecContext, name string) {
			updateStatus(ctx, they, name, func(s content) { delete(s, "s") })
		}, []string{".status.s added"}),
		Entry("by removing a condition", func(ctx SpecContext, name string) {
			updateStatus(ctx, they, name, func(s content) { s["conditions"] = []any{} })
		}, added(`.status.conditions[type="Ready"]`)),
		Entry("by wiping the managedFields", func(ctx SpecContext, name string) {
			wipe := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"managedFields":[{}]}}`))
			Expect(admin.Patch(ctx, fetchThing(ctx, name), wipe, client.FieldOwner(they))).To(Succeed())
			Expect(fetchThing(ctx, name).GetManagedFields()).To(BeEmpty())
		}, append(added(`.status.conditions[type="Ready"]`), ".status.i added", ".status.s added")),
	)

	It("that wiped the managedFields leaves a field in place that we give up later, without any further write", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		w := newWriter(clock)
		wipe := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"managedFields":[{}]}}`))
		Expect(admin.Patch(ctx, written(ctx, w, name, content{"s": "a", "i": 1}), wipe)).To(Succeed())
		Expect(write(ctx, w, status(name, content{"s": "a", "i": 1}), fetchThing(ctx, name)).Outcome).To(Equal(ssa.Applied))
		Expect(write(ctx, w, status(name, content{"s": "a"}), fetchThing(ctx, name)).Outcome).To(Equal(ssa.Applied))
		live := fetchThing(ctx, name)
		Expect(field(live, "status", "i")).To(BeEquivalentTo(1))
		Expect(managers(live)).To(ContainElement("before-first-apply/Update/status"))
		wire.requests()
		Expect(write(ctx, newWriter(clock), status(name, content{"s": "a"}), live).Outcome).To(Equal(ssa.Unchanged))
		quiet(ctx, live)
	})

	It("that takes our field with the same value is a second owner and costs nothing", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		w := newWriter(clock)
		written(ctx, w, name, content{"s": "same"})
		forceStatus(ctx, they, status(name, content{"s": "same"}))
		live := fetchThing(ctx, name)
		Expect(write(ctx, w, status(name, content{"s": "same"}), live).Outcome).To(Equal(ssa.Unchanged))
		quiet(ctx, live)
	})

	It("that fights us for ten minutes costs no more than the documented pace, and heals", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		w := newWriter(clock)
		mine := content{"s": "mine"}
		written(ctx, w, name, mine)
		start := clock.Now()
		var repairs []time.Duration
		var longest time.Duration
		live := fetchThing(ctx, name)
		for range 6000 {
			clock.Step(100 * time.Millisecond)
			if field(live, "status", "s") == "mine" {
				forceStatus(ctx, they, status(name, content{"s": "theirs"}))
				live = fetchThing(ctx, name)
			}
			result := write(ctx, w, status(name, mine), live, "1")
			Expect(result.Rivals()).To(Equal([]fieldowners.Owner{{Manager: they, Operation: metav1.ManagedFieldsOperationApply, Subresource: "status", APIVersion: "test.quell.dev/v1"}}))
			Expect(result.Paths()).To(Equal([]string{".status.s"}))
			if result.Sent {
				repairs = append(repairs, clock.Since(start).Truncate(time.Second))
				live = fetchThing(ctx, name)
				continue
			}
			Expect(result.Outcome).To(Equal(ssa.Contended))
			longest = max(longest, result.RetryAfter)
		}
		Expect(wire.requests()).To(HaveLen(len(repairs)))
		Expect(repairs).To(HaveLen(3+5), "%v", repairs)
		Expect(longest).To(BeNumerically("~", ssa.DefaultContentionPace.MaxPause, time.Second))

		By("letting a changed content through while it fights, when the inputs changed")
		Expect(write(ctx, w, status(name, content{"s": "new"}), live, "2").Sent).To(BeTrue())
		By("not forgetting the pause over it")
		forceStatus(ctx, they, status(name, content{"s": "theirs"}))
		Expect(write(ctx, w, status(name, content{"s": "new"}), fetchThing(ctx, name), "2").Outcome).To(Equal(ssa.Contended))
		By("healing when the rival has stopped, after the pause at the latest")
		clock.Step(5*time.Minute + time.Second)
		Expect(write(ctx, w, status(name, content{"s": "new"}), fetchThing(ctx, name), "2").Sent).To(BeTrue())
		By("saying so until it was calm for a while, and when that will be")
		healed := write(ctx, w, status(name, content{"s": "new"}), fetchThing(ctx, name), "2")
		Expect(healed.Outcome).To(Equal(ssa.Contended))
		Expect(healed.Began).To(BeFalse())
		Expect(healed.Paths()).To(Equal([]string{".status.s"}))
		clock.Step(healed.RetryAfter + time.Second)
		Expect(write(ctx, w, status(name, content{"s": "new"}), fetchThing(ctx, name), "2").Outcome).To(Equal(ssa.Unchanged))
		By("starting over after a calm time")
		clock.Step(15 * time.Minute)
		forceStatus(ctx, they, status(name, content{"s": "theirs"}))
		Expect(write(ctx, w, status(name, content{"s": "new"}), fetchThing(ctx, name), "2").Outcome).To(Equal(ssa.Applied))
	})

	It("that removes our field in a loop is held off too, as an unknown writer", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		w := newWriter(clock)
		written(ctx, w, name, content{"s": "mine", "i": 1})
		var last ssa.Result
		for range 20 {
			clock.Step(100 * time.Millisecond)
			updateStatus(ctx, they, name, func(s content) { delete(s, "s") })
			last = write(ctx, w, status(name, content{"s": "mine", "i": 1}), fetchThing(ctx, name))
		}
		Expect(last.Outcome).To(Equal(ssa.Contended))
		Expect(last.Rivals()).To(BeEmpty())
		Expect(last.Reasons).To(Equal([]ssa.Reason{{Change: ssa.Added, Path: ".status.s"}}))
		Expect(wire.requests()).To(HaveLen(3))
	})

	It("is left alone and named when the call was not to force", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		w := newWriter(clock)
		forceStatus(ctx, they, status(name, content{"s": "theirs"}))
		live := fetchThing(ctx, name)
		result, err := w.Write(ctx, ssa.Intent{Desired: status(name, content{"s": "mine", "i": 1}), Live: live, Rules: ssa.Rules{Default: ssa.Report}})
		Expect(err).NotTo(HaveOccurred())
		Expect(result.Outcome).To(Equal(ssa.Conflicted))
		Expect(result.Sent).To(BeFalse())
		Expect(result.Conflicts).To(Equal([]fieldowners.Conflict{{
			Path: ".status.s", Owner: fieldowners.Owner{Manager: they, Operation: metav1.ManagedFieldsOperationApply, Subresource: "status"},
		}}))
		Expect(fetchThing(ctx, name).GetResourceVersion()).To(Equal(live.GetResourceVersion()))
	})
})

// added are the reasons for a condition that is missing altogether.
func added(path string) []string {
	var reasons []string
	for _, f := range []string{"lastTransitionTime", "message", "reason", "status", "type"} {
		reasons = append(reasons, path+"."+f+" added")
	}
	return reasons
}

func words(r ssa.Result) []string {
	var words []string
	for _, reason := range r.Reasons {
		words = append(words, reason.String())
	}
	return words
}

// repaired is what a repair restores; a condition that was removed has a new transition time.
func repaired(u *unstructured.Unstructured) any {
	u = u.DeepCopy()
	delete(conditionOf(u, "Ready"), "lastTransitionTime")
	return field(u, "status")
}
