package ssa_test

import (
	"context"
	"time"

	"github.com/hduolab/quell/controller/ssa"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func sized(name string, size int) config {
	return object("Thing", name, content{"spec": content{"size": size}})
}

// applied applies a size for the first time and returns the object as the server has it then.
func applied(ctx context.Context, a *ssa.Applier, name string, size int) client.Object {
	GinkgoHelper()
	Expect(apply(ctx, a, sized(name, size), fetchThing(ctx, name))).To(HaveField("Sent", true))
	wire.requests()
	return fetchThing(ctx, name)
}

func exactly(ctx context.Context, a *ssa.Applier, desired config, live client.Object) ssa.Result {
	GinkgoHelper()
	result, err := a.Apply(ctx, ssa.Intent{Desired: desired, Live: live, Exact: true})
	Expect(err).NotTo(HaveOccurred())
	return result
}

func tentatively(ctx context.Context, a *ssa.Applier, desired config, live client.Object) ssa.Result {
	GinkgoHelper()
	result, err := a.Apply(ctx, ssa.Intent{Desired: desired, Live: live, Exact: true, Tentative: true})
	Expect(err).NotTo(HaveOccurred())
	return result
}

// disturb gives an object a new version that concerns nobody.
func disturb(ctx context.Context, name string) {
	GinkgoHelper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"at":"`+newName()+`"}}}`))
	Expect(admin.Patch(ctx, fetchThing(ctx, name), patch, client.FieldOwner(they))).To(Succeed())
}

// resize lets another manager set the size by update.
func resize(ctx context.Context, name string, size int64) {
	GinkgoHelper()
	u := fetchThing(ctx, name)
	u.Object["spec"].(content)["size"] = size
	Expect(admin.Update(ctx, u, client.FieldOwner(they))).To(Succeed())
}

func size(ctx context.Context, name string) any { return field(fetchThing(ctx, name), "spec", "size") }

var _ = Describe("an exact apply", func() {
	var (
		clock *testclock.FakeClock
		name  string
		a     *ssa.Applier
	)
	BeforeEach(func(ctx SpecContext) {
		clock, name = newClock(), newThing(ctx)
		a = newApplier(clock)
	})

	It("changes the version that was seen, and owns nothing of it", func(ctx SpecContext) {
		live := fetchThing(ctx, name)
		Expect(exactly(ctx, a, sized(name, 2), live).Outcome).To(Equal(ssa.Applied))
		Expect(wire.requests()).To(HaveLen(1))
		live = fetchThing(ctx, name)
		Expect(live.GetManagedFields()[0].FieldsV1.GetRawString()).NotTo(ContainSubstring("resourceVersion"))
		for _, fresh := range []*ssa.Applier{a, newApplier(clock)} {
			Expect(exactly(ctx, fresh, sized(name, 2), live).Outcome).To(Equal(ssa.Unchanged))
		}
		quiet(ctx, fetchThing(ctx, name))
	})

	It("changes no other version, and the same content can be applied to that right after", func(ctx SpecContext) {
		old := applied(ctx, a, name, 2)
		resize(ctx, name, 9)
		stale := exactly(ctx, a, sized(name, 3), old)
		Expect(stale.Outcome).To(Equal(ssa.Stale))
		Expect(stale.Sent).To(BeFalse())
		Expect(stale.Held()).To(BeFalse())
		Expect(wire.requests()).To(HaveLen(1))
		Expect(size(ctx, name)).To(BeEquivalentTo(9))

		Expect(exactly(ctx, a, sized(name, 3), fetchThing(ctx, name)).Outcome).To(Equal(ssa.Applied))
		Expect(size(ctx, name)).To(BeEquivalentTo(3))
		wire.requests()
		Expect(exactly(ctx, a, sized(name, 3), fetchThing(ctx, name)).Outcome).To(Equal(ssa.Unchanged))
		Expect(wire.requests()).To(BeEmpty())
	})

	It("may also do the same through a subresource", func(ctx SpecContext) {
		w := newWriter(clock)
		old := written(ctx, w, name, readyIs("False"))
		disturb(ctx, name)
		wire.requests()
		intent := ssa.Intent{Desired: status(name, readyIs("True")), Live: old, Exact: true}
		Expect(w.Write(ctx, intent)).To(HaveField("Outcome", ssa.Stale))
		Expect(conditionOf(fetchThing(ctx, name), "Ready")["status"]).To(Equal("False"))
		intent.Live = fetchThing(ctx, name)
		Expect(w.Write(ctx, intent)).To(HaveField("Outcome", ssa.Applied))
		Expect(wire.requests()).To(HaveLen(2))
		Expect(conditionOf(fetchThing(ctx, name), "Ready")["status"]).To(Equal("True"))
	})

	It("costs no request when what was seen is older than our own write", func(ctx SpecContext) {
		old := fetchThing(ctx, name)
		live := applied(ctx, a, name, 2)
		for range 50 {
			Expect(exactly(ctx, a, sized(name, 3), old)).To(And(HaveField("Outcome", ssa.Stale), HaveField("RetryAfter", time.Duration(0))))
		}
		Expect(exactly(ctx, a, sized(name, 2), old).Outcome).To(Equal(ssa.Unchanged), "this is in place, as the answer told")
		quiet(ctx, fetchThing(ctx, live.GetName()))
	})

	It("is tried again more and more rarely when it never meets the version that was seen", func(ctx SpecContext) {
		old := applied(ctx, a, name, 2)
		disturb(ctx, name)
		var held time.Duration
		for range 100 {
			held = exactly(ctx, a, sized(name, 3), old).RetryAfter
		}
		Expect(held).To(Equal(time.Second))
		Expect(len(wire.requests())).To(BeNumerically("<=", 21))
		clock.Step(held)
		Expect(exactly(ctx, a, sized(name, 3), fetchThing(ctx, name)).Outcome).To(Equal(ssa.Applied))
	})

	It("is no fight, however often it meets another version", func(ctx SpecContext) {
		a = newApplier(clock, func(o *ssa.Options) {
			o.Contention = ssa.Pace{Free: 2, Window: time.Minute, Pause: time.Minute, MaxPause: time.Minute}
		})
		applied(ctx, a, name, 2)
		for range 2 {
			resize(ctx, name, 9)
			old := fetchThing(ctx, name)
			for range 5 {
				disturb(ctx, name)
				Expect(exactly(ctx, a, sized(name, 2), old).Outcome).To(Equal(ssa.Stale))
			}
			Expect(exactly(ctx, a, sized(name, 2), fetchThing(ctx, name)).Outcome).To(Equal(ssa.Applied))
		}
		resize(ctx, name, 9)
		Expect(exactly(ctx, a, sized(name, 2), fetchThing(ctx, name)).Outcome).To(Equal(ssa.Contended), "the third fight is one too many")
	})

	It("knows what became of a request whose answer was lost", func(ctx SpecContext) {
		old := applied(ctx, a, name, 2)
		wire.breakWith(lose(errReset, true))
		_, err := a.Apply(ctx, ssa.Intent{Desired: sized(name, 3), Live: old, Exact: true})
		Expect(err).To(HaveOccurred())
		wire.heal()
		Expect(size(ctx, name)).To(BeEquivalentTo(3))
		Expect(exactly(ctx, a, sized(name, 3), old).Outcome).To(Equal(ssa.Stale))
		wire.requests()
		Expect(exactly(ctx, a, sized(name, 3), fetchThing(ctx, name)).Outcome).To(Equal(ssa.Unchanged))
		Expect(wire.requests()).To(BeEmpty())
	})

	It("does not make a deleted object again, nor touch a later one of its name", func(ctx SpecContext) {
		old := applied(ctx, a, name, 2)
		remove(ctx, "Thing", name)
		Expect(exactly(ctx, a, sized(name, 3), old).Outcome).To(Equal(ssa.Gone))
		recreate(ctx, "Thing", name)
		Expect(exactly(ctx, a, sized(name, 3), old).Outcome).To(Or(Equal(ssa.Gone), Equal(ssa.Stale)))
		Expect(size(ctx, name)).To(BeEquivalentTo(1))
	})

	It("creates what does not exist", func(ctx SpecContext) {
		Expect(exactly(ctx, a, sized(newName(), 3), nil).Outcome).To(Equal(ssa.Created))
	})
})

var _ = Describe("a tentative apply", func() {
	var (
		clock *testclock.FakeClock
		name  string
		a     *ssa.Applier
	)
	BeforeEach(func(ctx SpecContext) {
		clock, name = newClock(), newThing(ctx)
		a = newApplier(clock)
	})

	It("costs nothing when its content is in place", func(ctx SpecContext) {
		live := applied(ctx, a, name, 2)
		for _, fresh := range []*ssa.Applier{a, newApplier(clock)} {
			Expect(tentatively(ctx, fresh, sized(name, 2), live).Outcome).To(Equal(ssa.Unchanged))
		}
		quiet(ctx, fetchThing(ctx, name))
	})

	It("sends nothing otherwise, and says why it would", func(ctx SpecContext) {
		live := applied(ctx, a, name, 2)
		result := tentatively(ctx, a, sized(name, 3), live)
		Expect(result.Outcome).To(Equal(ssa.Stale))
		Expect(result.Paths()).To(ConsistOf(".spec.size"))
		Expect(tentatively(ctx, a, sized(newName(), 3), nil).Outcome).To(Equal(ssa.Stale))
		quiet(ctx, fetchThing(ctx, name))
	})

	It("and the apply after it are one repair", func(ctx SpecContext) {
		a = newApplier(clock, func(o *ssa.Options) {
			o.Contention = ssa.Pace{Free: 2, Window: time.Minute, Pause: time.Minute, MaxPause: time.Minute}
		})
		applied(ctx, a, name, 2)
		for range 2 {
			resize(ctx, name, 9)
			live := fetchThing(ctx, name)
			Expect(tentatively(ctx, a, sized(name, 2), live).Outcome).To(Equal(ssa.Stale))
			Expect(exactly(ctx, a, sized(name, 2), live).Outcome).To(Equal(ssa.Applied))
		}
		resize(ctx, name, 9)
		wire.requests()
		Expect(tentatively(ctx, a, sized(name, 2), fetchThing(ctx, name)).Outcome).To(Equal(ssa.Contended), "held back before anything is asked")
		Expect(wire.requests()).To(BeEmpty())
		clock.Step(time.Minute)
		Expect(tentatively(ctx, a, sized(name, 2), fetchThing(ctx, name)).Outcome).To(Equal(ssa.Stale))
		Expect(exactly(ctx, a, sized(name, 2), fetchThing(ctx, name)).Outcome).To(Equal(ssa.Contended))
		Expect(size(ctx, name)).To(BeEquivalentTo(2))
	})

	It("lets refused content be tried again when it is time", func(ctx SpecContext) {
		live := applied(ctx, a, name, 2)
		wire.breakWith(answer(422, failure(422, "Invalid"), false))
		_, err := a.Apply(ctx, ssa.Intent{Desired: sized(name, 3), Live: live})
		Expect(ssa.IsTerminal(err)).To(BeTrue())
		wire.heal()
		Expect(func() error {
			for range 100 {
				result, err := a.Apply(ctx, ssa.Intent{Desired: sized(name, 3), Live: live, Tentative: true})
				switch {
				case err != nil:
					clock.Step(time.Minute)
				case result.Outcome == ssa.Stale:
					return nil
				}
			}
			return err
		}()).To(Succeed())
		wire.requests()
		Expect(exactly(ctx, a, sized(name, 3), live).Outcome).To(Equal(ssa.Applied))
	})
})
