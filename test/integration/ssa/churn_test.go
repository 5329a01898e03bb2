package ssa_test

import (
	"fmt"
	"strconv"
	"time"

	"github.com/hduolab/quell/controller/ssa"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	testclock "k8s.io/utils/clock/testing"
)

var _ = Describe("content that the caller changes on each call", func() {
	DescribeTable("is written at the documented pace at most, and its paths are named",
		func(ctx SpecContext, next func(i int, clock *testclock.FakeClock) content, path string) {
			clock, name := newClock(), newThing(ctx)
			w := newWriter(clock)
			live := fetchThing(ctx, name)
			var held int
			var longest time.Duration
			for i := range 3000 { // ten minutes, five times a second
				clock.Step(200 * time.Millisecond)
				result := write(ctx, w, status(name, next(i, clock)), live)
				if result.Sent {
					live = result.Object.(*unstructured.Unstructured)
					continue
				}
				if result.Outcome == ssa.Unchanged {
					continue
				}
				held++
				Expect(result.Outcome).To(Equal(ssa.SelfChurn))
				Expect(result.Paths()).To(Equal([]string{path}))
				Expect(result.RetryAfter).To(BeNumerically(">", 0))
				longest = max(longest, result.RetryAfter)
			}
			pace := ssa.DefaultChurnPace
			// The first write, the free ones with what comes in while they are spent, and one after each pause of 5, 10, ... 300 s.
			Expect(len(wire.requests())).To(BeNumerically("<=", 1+pace.Free+2+7))
			Expect(held).To(BeNumerically(">", 1000))
			Expect(longest).To(BeNumerically("~", pace.MaxPause, time.Second))
		},
		Entry("a time", func(_ int, clock *testclock.FakeClock) content {
			return content{"s": clock.Now().Format(time.RFC3339Nano)}
		}, ".status.s"),
		Entry("a counter", func(i int, _ *testclock.FakeClock) content { return content{"l": i} }, ".status.l"),
		Entry("there and back", func(i int, _ *testclock.FakeClock) content { return content{"s": strconv.Itoa(i / 2 % 2)} }, ".status.s"),
		Entry("a message", func(i int, _ *testclock.FakeClock) content {
			return content{"conditions": []any{condition("Ready", "True", "Works", fmt.Sprintf("after %d ms", i))}}
		}, `.status.conditions[type="Ready"].message`),
		Entry("the order of an atomic list", func(i int, _ *testclock.FakeClock) content {
			return content{"steps": []any{strconv.Itoa(i % 2), strconv.Itoa((i + 1) % 2)}}
		}, ".status.steps"),
	)

	It("is held back, not dropped: the last content is written when the pause ends", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		w := newWriter(clock)
		for i := range 2 + ssa.DefaultChurnPace.Free {
			write(ctx, w, status(name, content{"l": i}), fetchThing(ctx, name))
		}
		last := status(name, content{"l": 1000})
		live := fetchThing(ctx, name)
		held := write(ctx, w, last, live)
		Expect(held.Outcome).To(Equal(ssa.SelfChurn))
		wire.requests()
		clock.Step(held.RetryAfter - time.Millisecond)
		Expect(write(ctx, w, last, live).RetryAfter).To(Equal(time.Millisecond))
		Expect(wire.requests()).To(BeEmpty())
		clock.Step(time.Millisecond)
		Expect(write(ctx, w, last, live).Outcome).To(Equal(ssa.Applied))
		Expect(field(fetchThing(ctx, name), "status", "l")).To(BeEquivalentTo(1000))
	})

	It("is not held back while the inputs change: a rollout of 200 steps within a second", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		w := newWriter(clock)
		for i := range 200 {
			clock.Step(5 * time.Millisecond)
			Expect(write(ctx, w, status(name, content{"i": i}), fetchThing(ctx, name), strconv.Itoa(i)).Outcome).To(Equal(ssa.Applied))
		}
	})

	It("is not held back at start-up: 100 objects at once, each written twice", func(ctx SpecContext) {
		clock := newClock()
		w := newWriter(clock)
		for range 100 {
			name := newThing(ctx)
			Expect(write(ctx, w, status(name, content{"s": "Pending"}), fetchThing(ctx, name)).Outcome).To(Equal(ssa.Applied))
			Expect(write(ctx, w, status(name, content{"s": "Running"}), fetchThing(ctx, name)).Outcome).To(Equal(ssa.Applied))
		}
	})

	It("has a budget that grows with the number of children", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		w := newWriter(clock)
		for i := range 100 {
			result, err := w.Write(ctx, ssa.Intent{Desired: status(name, content{"i": i}), Live: fetchThing(ctx, name), Children: 10})
			Expect(err).NotTo(HaveOccurred())
			Expect(result.Outcome).To(Equal(ssa.Applied))
		}
	})
})

var _ = Describe("details", func() {
	settling := func(clock *testclock.FakeClock) *ssa.StatusWriter {
		return newWriter(clock, func(o *ssa.StatusOptions) { o.Details, o.Settle = []string{"i", "nested"}, 2*time.Second })
	}
	with := func(i int, ready string) content {
		return content{"i": i, "nested": content{"count": i}, "conditions": []any{condition("Ready", ready, "Because", "")}}
	}

	It("wait since the last write, transitions do not and take them along", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		w := settling(clock)
		written(ctx, w, name, with(1, "False"))
		clock.Step(500 * time.Millisecond)
		live := fetchThing(ctx, name)
		held := write(ctx, w, status(name, with(2, "False")), live)
		Expect(held.Outcome).To(Equal(ssa.Settling))
		Expect(held.RetryAfter).To(Equal(1500 * time.Millisecond))
		Expect(held.Paths()).To(Equal([]string{".status.i", ".status.nested.count"}))
		quiet(ctx, live)
		Expect(write(ctx, w, status(name, with(3, "True")), live).Outcome).To(Equal(ssa.Applied), "a transition")
		live = fetchThing(ctx, name)
		Expect(field(live, "status", "i")).To(BeEquivalentTo(3))
		clock.Step(time.Second)
		Expect(write(ctx, w, status(name, with(4, "True")), live).RetryAfter).To(Equal(time.Second))
		clock.Step(time.Second)
		Expect(write(ctx, w, status(name, with(4, "True")), live).Outcome).To(Equal(ssa.Applied), "settled")
		Expect(wire.requests()).To(HaveLen(2))
	})

	It("that a rival took are repaired at once", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		w := settling(clock)
		written(ctx, w, name, with(1, "False"))
		forceStatus(ctx, they, status(name, content{"i": 9}))
		Expect(write(ctx, w, status(name, with(1, "False")), fetchThing(ctx, name)).Outcome).To(Equal(ssa.Applied))
	})

	It("do not wait after a restart", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		live := written(ctx, settling(clock), name, with(1, "False"))
		Expect(write(ctx, settling(clock), status(name, with(2, "False")), live).Outcome).To(Equal(ssa.Applied))
	})
})
