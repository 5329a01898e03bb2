package ssa_test

import (
	"sync"

	"github.com/hduolab/quell/controller/ssa"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// workers is how many goroutines use one writer at once.
const workers = 8

var _ = Describe("one writer for many workers", func() {
	parallel := func(work func(worker int)) {
		var group sync.WaitGroup
		for i := range workers {
			group.Go(func() {
				defer GinkgoRecover()
				work(i)
			})
		}
		group.Wait()
	}

	It("sends one request for the same content of the same object, whoever is first", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		w := newWriter(clock)
		live := fetchThing(ctx, name)
		parallel(func(int) {
			for range 20 {
				write(ctx, w, status(name, readyIs("True")), live)
			}
		})
		Expect(wire.requests()).To(HaveLen(1))
	})

	It("writes different objects side by side", func(ctx SpecContext) {
		clock := newClock()
		w := newWriter(clock)
		var names [workers]string
		for i := range names {
			names[i] = newThing(ctx)
		}
		parallel(func(worker int) {
			for i := range 10 {
				s := content{"i": i, "tags": []any{names[worker]}}
				write(ctx, w, status(names[worker], s), fetchThing(ctx, names[worker]))
				write(ctx, w, status(names[worker], s), fetchThing(ctx, names[worker]))
			}
		})
		Expect(wire.requests()).To(HaveLen(workers * 10))
		for _, name := range names {
			Expect(field(fetchThing(ctx, name), "status", "tags")).To(Equal([]any{name}))
		}
	})

	It("keeps the last content that anybody wrote to one object", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		w := newWriter(clock)
		parallel(func(worker int) {
			for i := range 10 {
				write(ctx, w, status(name, content{"i": worker*100 + i}), fetchThing(ctx, name), newName())
			}
		})
		live := fetchThing(ctx, name)
		value := field(live, "status", "i")
		wire.requests()
		Expect(write(ctx, w, status(name, content{"i": value}), live).Outcome).To(Equal(ssa.Unchanged))
		quiet(ctx, live)
	})

	It("creates an object once", func(ctx SpecContext) {
		a, name := newApplier(newClock()), newName()
		desired := object("Thing", name, content{"spec": content{"size": 1}})
		parallel(func(int) { apply(ctx, a, desired, nil) })
		live := fetchThing(ctx, name)
		Expect(live.GetGeneration()).To(BeEquivalentTo(1))
		wire.requests()
		Expect(apply(ctx, a, desired, live).Outcome).To(Equal(ssa.Unchanged))
		quiet(ctx, live)
	})

	It("works with fewer records than objects", func(ctx SpecContext) {
		clock := newClock()
		w := newWriter(clock, func(o *ssa.StatusOptions) { o.Remember = 10 })
		var names []string
		for range 100 {
			name := newThing(ctx)
			names = append(names, name)
			write(ctx, w, status(name, readyIs("True")), fetchThing(ctx, name))
		}
		Expect(wire.requests()).To(HaveLen(100))
		parallel(func(worker int) {
			for i, name := range names {
				if i%workers == worker {
					Expect(write(ctx, w, status(name, readyIs("True")), fetchThing(ctx, name)).Outcome).To(Equal(ssa.Unchanged))
				}
			}
		})
		Expect(wire.requests()).To(BeEmpty())
	})
})
