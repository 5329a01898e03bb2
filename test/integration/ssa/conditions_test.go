package ssa_test

import (
	"time"

	"github.com/hduolab/quell/controller/ssa"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("conditions", func() {
	ready := func(status, reason, message string) content {
		return content{"conditions": []any{condition("Ready", status, reason, message)}}
	}
	since := func(ctx SpecContext, name string) any {
		return conditionOf(fetchThing(ctx, name), "Ready")["lastTransitionTime"]
	}

	It("move their transition time twice when they flip and come back", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		w := newWriter(clock)
		written(ctx, w, name, ready("True", "Works", ""))
		Expect(since(ctx, name)).To(Equal("2026-03-01T12:00:00Z"))
		for i, s := range []string{"False", "True"} {
			clock.Step(1100 * time.Millisecond)
			Expect(write(ctx, w, status(name, ready(s, "Works", "")), fetchThing(ctx, name)).Outcome).To(Equal(ssa.Applied))
			Expect(since(ctx, name)).To(Equal([]string{"2026-03-01T12:00:01Z", "2026-03-01T12:00:02Z"}[i]))
		}
		Expect(wire.requests()).To(HaveLen(2))
	})

	It("keep their transition time when reason or message change alone", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		w := newWriter(clock)
		written(ctx, w, name, ready("True", "Works", "a"))
		clock.Step(time.Hour)
		result := write(ctx, w, status(name, ready("True", "Works", "b")), fetchThing(ctx, name))
		Expect(result.Paths()).To(Equal([]string{`.status.conditions[type="Ready"].message`}))
		clock.Step(time.Hour)
		result = write(ctx, newWriter(clock), status(name, ready("True", "Other", "b")), fetchThing(ctx, name))
		Expect(result.Paths()).To(Equal([]string{`.status.conditions[type="Ready"].reason`}))
		Expect(since(ctx, name)).To(Equal("2026-03-01T12:00:00Z"))
	})

	It("cost nothing when the caller stamps the transition time on each call", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		stamped := func() config {
			c := condition("Ready", "True", "Works", "")
			c["lastTransitionTime"] = clock.Now().Format(time.RFC3339Nano)
			return status(name, content{"conditions": []any{c}})
		}
		w := newWriter(clock)
		clock.Step(123456789)
		write(ctx, w, stamped(), fetchThing(ctx, name))
		wire.requests()
		live := fetchThing(ctx, name)
		Expect(since(ctx, name)).To(Equal("2026-03-01T12:00:00Z"))
		for range 50 {
			clock.Step(1100 * time.Millisecond)
			Expect(write(ctx, w, stamped(), live).Outcome).To(Equal(ssa.Unchanged))
			Expect(write(ctx, newWriter(clock), stamped(), live).Outcome).To(Equal(ssa.Unchanged))
		}
		quiet(ctx, live)
	})

	It("of another manager keep their values and their owner, as do its labels and status fields", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		theirs := condition("Theirs", "True", "Mine", "not yours")
		theirs["lastTransitionTime"] = "2020-01-01T00:00:00Z"
		forceStatus(ctx, they, status(name, content{"j": 5, "nested": content{"a": "x"}, "tags": []any{"t"}, "conditions": []any{theirs}}))
		labelled := fetchThing(ctx, name)
		labelled.SetLabels(map[string]string{"team": "a"})
		Expect(admin.Update(ctx, labelled)).To(Succeed())
		before := fetchThing(ctx, name)
		w := newWriter(clock)
		for i, s := range []string{"True", "False", "False"} {
			clock.Step(time.Hour)
			s := ready(s, "Works", "")
			s["nested"], s["i"] = content{"count": i}, 0
			write(ctx, w, status(name, s), fetchThing(ctx, name))
		}
		after := fetchThing(ctx, name)
		Expect(conditionOf(after, "Theirs")).To(Equal(conditionOf(before, "Theirs")))
		Expect(field(after, "status", "j")).To(BeEquivalentTo(5))
		Expect(field(after, "status", "nested", "a")).To(Equal("x"))
		Expect(field(after, "status", "tags")).To(Equal([]any{"t"}))
		Expect(after.GetLabels()).To(Equal(map[string]string{"team": "a"}))
		Expect(after.GetManagedFields()).To(ContainElements(before.GetManagedFields()), "their entries are as they were")
		Expect(wire.requests()).To(HaveLen(3))
	})

	It("taken over from a type of the live object have the time of the change", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		old := condition("Ready", "False", "Old", "")
		old["lastTransitionTime"] = "2020-01-01T00:00:00Z"
		forceStatus(ctx, they, status(name, content{"conditions": []any{old}}))
		w := newWriter(clock)
		write(ctx, w, status(name, ready("False", "New", "")), fetchThing(ctx, name))
		Expect(since(ctx, name)).To(Equal("2020-01-01T00:00:00Z"), "status is the same")
		write(ctx, w, status(name, ready("True", "New", "")), fetchThing(ctx, name))
		Expect(since(ctx, name)).To(Equal("2026-03-01T12:00:00Z"))
	})

	It("leave their transition time to whoever owns it under rule Yield, at no cost of its own", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		written(ctx, newWriter(clock), name, ready("False", "Down", ""))
		const theirs = "2020-01-01T00:00:00Z"
		forceStatus(ctx, they, status(name, content{"conditions": []any{content{"type": "Ready", "lastTransitionTime": theirs}}}))
		yielding := func(w *ssa.StatusWriter, s string) ssa.Result {
			result, err := w.Write(ctx, ssa.Intent{Desired: status(name, ready(s, "Down", "")), Live: fetchThing(ctx, name), Rules: by(ssa.Yield)})
			Expect(err).NotTo(HaveOccurred())
			Expect(texts(result.Yielded)).To(Equal([]string{`.status.conditions[type="Ready"].lastTransitionTime yielded to "rival" (Apply, status)`}))
			return result
		}
		w := newWriter(clock)
		Expect(yielding(w, "False").Outcome).To(Equal(ssa.Unchanged))
		Expect(yielding(w, "True").Outcome).To(Equal(ssa.Applied))
		for _, w := range []*ssa.StatusWriter{w, newWriter(clock)} {
			Expect(yielding(w, "True").Outcome).To(Equal(ssa.Unchanged))
		}
		Expect(since(ctx, name)).To(Equal(theirs))
		Expect(wire.requests()).To(HaveLen(1))
	})
})
