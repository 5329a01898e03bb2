package ssa_test

import (
	"fmt"
	"time"

	"github.com/hduolab/quell/controller/ssa"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("content that the API server refuses", func() {
	sized := func(name string, size any) config {
		return object("Thing", name, content{"spec": content{"size": size}})
	}

	It("is not sent again for each look, and is once it is another", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		a := newApplier(clock)
		apply(ctx, a, sized(name, 2), nil)
		live := fetchThing(ctx, name)
		wire.requests()
		invalid := object("Thing", name, content{"metadata": content{"name": name, "namespace": namespace, "labels": content{"a": "not a label!"}}, "spec": content{"size": 2}})
		for range 100 {
			clock.Step(100 * time.Millisecond)
			_, err := a.Apply(ctx, ssa.Intent{Desired: invalid, Live: live})
			Expect(ssa.IsTerminal(err)).To(BeTrue(), "%v", err)
			Expect(err).To(MatchError(ContainSubstring("not a label!")))
		}
		Expect(len(wire.requests())).To(BeNumerically("<=", 1+ssa.DefaultContentionPace.Free))
		clock.Step(time.Minute)
		_, err := a.Apply(ctx, ssa.Intent{Desired: invalid, Live: live})
		Expect(err).To(HaveOccurred())
		Expect(wire.requests()).To(HaveLen(1), "asked again after the pause: a policy may have changed")
		Expect(apply(ctx, a, sized(name, 3), live).Outcome).To(Equal(ssa.Applied))
	})

	It("leaves no doubt about what is there: what was in place before costs no request", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		w := newWriter(clock)
		live := written(ctx, w, name, content{"s": "a"})
		_, err := w.Write(ctx, ssa.Intent{Desired: status(name, content{"s": "a", "conditions": []any{content{"type": "Ready"}}}), Live: live})
		Expect(ssa.IsTerminal(err)).To(BeTrue(), "%v", err)
		Expect(wire.requests()).To(HaveLen(1))
		Expect(write(ctx, w, status(name, content{"s": "a"}), live).Outcome).To(Equal(ssa.Unchanged))
		quiet(ctx, live)
	})

	It("for its conflicts is not sent again for each look, and is at once when it is to force, or people ask for something else", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		w := newWriter(clock)
		forceStatus(ctx, they, status(name, content{"s": "theirs"}))
		live := fetchThing(ctx, name)
		in := ssa.Intent{Desired: status(name, content{"s": "mine"}), Live: live, Rules: ssa.Rules{Default: ssa.Report}}
		for range 100 {
			clock.Step(100 * time.Millisecond)
			result, err := w.Write(ctx, in)
			Expect(err).NotTo(HaveOccurred())
			Expect(result.Outcome).To(Equal(ssa.Conflicted))
			Expect(result.Conflicts).To(HaveLen(1))
			Expect(result.Sent).To(BeFalse())
		}
		Expect(len(wire.requests())).To(BeNumerically("<=", 1+ssa.DefaultContentionPace.Free))
		in.Rules = ssa.Rules{}
		result, err := w.Write(ctx, in)
		Expect(err).NotTo(HaveOccurred())
		Expect(result.Outcome).To(Equal(ssa.Applied))
	})
})

var _ = Describe("a limit", func() {
	It("delays what follows inputs that change all the time, and drops nothing", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		limit := ssa.Pace{Free: 5, Window: time.Minute, Pause: 2 * time.Second, MaxPause: 8 * time.Second}
		w := newWriter(clock, func(o *ssa.StatusOptions) { o.Limit = limit })
		var held ssa.Result
		for i := range 600 { // a minute
			clock.Step(100 * time.Millisecond)
			result := write(ctx, w, status(name, content{"s": fmt.Sprint(i % 2)}), fetchThing(ctx, name), fmt.Sprint(i))
			if result.Held() {
				Expect(result.Outcome).To(Equal(ssa.Throttled))
				held = result
			}
		}
		// The free ones, and one after each pause of 2, 4, 8, 8, ... seconds.
		Expect(len(wire.requests())).To(And(BeNumerically(">", 5), BeNumerically("<=", 5+1+2+60/8+6)))
		clock.Step(held.RetryAfter)
		last := write(ctx, w, status(name, content{"s": "last"}), fetchThing(ctx, name), "last")
		Expect(last.Sent).To(BeTrue())
		Expect(field(fetchThing(ctx, name), "status", "s")).To(Equal("last"))
	})
})
