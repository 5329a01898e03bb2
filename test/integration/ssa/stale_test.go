package ssa_test

import (
	"fmt"
	"time"

	"github.com/hduolab/quell/controller/ssa"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func readyIs(s string) content {
	return content{"s": s, "conditions": []any{condition("Ready", s, "Because", "")}}
}

var _ = Describe("a cache that is older than our last write", func() {
	It("costs no second request for the same content", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		w := newWriter(clock)
		old := fetchThing(ctx, name)
		live := written(ctx, w, name, readyIs("True"))
		for range 3 {
			clock.Step(1100 * time.Millisecond)
			result := write(ctx, w, status(name, readyIs("True")), old)
			Expect(result.Outcome).To(Equal(ssa.Unchanged))
			Expect(result.Object.GetResourceVersion()).To(Equal(live.GetResourceVersion()), "the newest version that is known")
		}
		quiet(ctx, live)
	})

	It("does not mislead transition times", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		w := newWriter(clock)
		old := written(ctx, w, name, readyIs("False"))
		clock.Step(time.Minute)
		write(ctx, w, status(name, readyIs("True")), old)
		turned := conditionOf(fetchThing(ctx, name), "Ready")["lastTransitionTime"]
		clock.Step(time.Minute)
		with := readyIs("True")
		with["i"] = 1
		Expect(write(ctx, w, status(name, with), old).Outcome).To(Equal(ssa.Applied))
		Expect(conditionOf(fetchThing(ctx, name), "Ready")["lastTransitionTime"]).To(Equal(turned), "Ready did not change since")
		clock.Step(time.Minute)
		Expect(write(ctx, w, status(name, readyIs("False")), old).Outcome).To(Equal(ssa.Applied), "although the old copy says so too")
		Expect(conditionOf(fetchThing(ctx, name), "Ready")).To(HaveKeyWithValue("lastTransitionTime", "2026-03-01T12:03:00Z"))
		Expect(wire.requests()).To(HaveLen(3))
	})

	It("is read anew when the answer is forgotten, and then costs no second request for the same content", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		w := newWriter(clock, func(o *ssa.StatusOptions) { o.Reader = admin })
		old := fetchThing(ctx, name)
		written(ctx, w, name, readyIs("True"))
		for range 520 { // more answers than are kept
			other := newThing(ctx)
			write(ctx, w, status(other, content{"s": "a"}), fetchThing(ctx, other))
		}
		wire.requests()
		live := fetchThing(ctx, name)
		clock.Step(time.Hour)
		unchanged := write(ctx, w, status(name, readyIs("True")), old)
		Expect(unchanged.Outcome).To(Equal(ssa.Unchanged))
		Expect(unchanged.Object.GetResourceVersion()).To(Equal(live.GetResourceVersion()))
		quiet(ctx, live)
		Expect(write(ctx, w, status(name, readyIs("False")), old).Outcome).To(Equal(ssa.Applied))
		Expect(field(fetchThing(ctx, name), "status", "s")).To(Equal("False"))
		Expect(wire.requests()).To(HaveLen(1))
	})

	It("does not make churn of a generation that moves between read and write", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		w := newWriter(clock)
		for i := range 40 {
			seen := fetchThing(ctx, name)
			spec := fetchThing(ctx, name)
			spec.Object["spec"] = content{"size": i + 10}
			Expect(admin.Update(ctx, spec)).To(Succeed())
			Expect(write(ctx, w, status(name, content{"l": seen.GetGeneration()}), seen).Outcome).To(Equal(ssa.Applied), "step %d", i)
		}
	})
})

var _ = Describe("a cache that is older than our last write and shows what is desired again", func() {
	forget := func(ctx SpecContext, w *ssa.StatusWriter) {
		for range 520 { // more answers than are kept
			other := newThing(ctx)
			write(ctx, w, status(other, content{"s": "a"}), fetchThing(ctx, other))
		}
	}
	for name, reader := range map[string]client.Reader{"with a reader": nil, "without one": nil} {
		It("is not believed when the answer is forgotten, "+name, func(ctx SpecContext) {
			if name == "with a reader" {
				reader = admin
			}
			clock, name := newClock(), newThing(ctx)
			w := newWriter(clock, func(o *ssa.StatusOptions) { o.Reader = reader })
			old := written(ctx, w, name, content{"s": "a"})
			Expect(write(ctx, w, status(name, content{"s": "b"}), old).Outcome).To(Equal(ssa.Applied))
			forget(ctx, w)
			Expect(write(ctx, w, status(name, content{"s": "a"}), old).Sent).To(BeTrue())
			Expect(field(fetchThing(ctx, name), "status", "s")).To(Equal("a"))
		})
	}

	It("is not believed when the answer was lost", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		w := newWriter(clock)
		old := written(ctx, w, name, content{"s": "a"})
		wire.breakWith(lose(errReset, true))
		_, err := w.Write(ctx, ssa.Intent{Desired: status(name, content{"s": "b"}), Live: old})
		Expect(err).To(HaveOccurred())
		wire.heal()
		Expect(field(fetchThing(ctx, name), "status", "s")).To(Equal("b"))
		Expect(write(ctx, w, status(name, content{"s": "a"}), old).Sent).To(BeTrue())
		Expect(field(fetchThing(ctx, name), "status", "s")).To(Equal("a"))
		wire.requests()
		Expect(write(ctx, w, status(name, content{"s": "a"}), fetchThing(ctx, name)).Outcome).To(Equal(ssa.Unchanged))
		Expect(wire.requests()).To(BeEmpty())
	})
})

var _ = Describe("an object that went away between read and write", func() {
	It("is Gone for a status", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		w := newWriter(clock)
		live := written(ctx, w, name, content{"s": "a"})
		remove(ctx, "Thing", name)
		Expect(write(ctx, w, status(name, content{"s": "b"}), live)).To(Equal(ssa.Result{Outcome: ssa.Gone, Began: true}))
	})

	It("is Replaced for a status when there is another of its name, and its pauses are not inherited", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		w := newWriter(clock)
		live := written(ctx, w, name, content{"s": "0"})
		var held ssa.Result
		for i := range 40 { // until the caller's own churn is held back
			held = write(ctx, w, status(name, content{"s": fmt.Sprint(i)}), fetchThing(ctx, name))
		}
		Expect(held.Outcome).To(Equal(ssa.SelfChurn))
		remove(ctx, "Thing", name)
		recreate(ctx, "Thing", name)
		clock.Step(time.Hour)
		wire.requests()
		result := write(ctx, w, status(name, content{"s": "new"}), live)
		Expect(result.Outcome).To(Equal(ssa.Replaced))
		fresh := fetchThing(ctx, name)
		Expect(result.Object.GetUID()).To(Equal(fresh.GetUID()))
		Expect(write(ctx, w, status(name, content{"s": "new"}), fresh).Outcome).To(Equal(ssa.Unchanged))
		for i := range 10 {
			Expect(write(ctx, w, status(name, content{"s": fmt.Sprint(i)}), fetchThing(ctx, name)).Outcome).To(Equal(ssa.Applied))
		}
		Expect(wire.requests()).To(HaveLen(12), "the object whose answer is forgotten is read anew, once")
	})

	service := func(name string, port int32) *corev1ac.ServiceApplyConfiguration {
		return corev1ac.Service(name, namespace).WithSpec(corev1ac.ServiceSpec().WithSelector(map[string]string{"app": name}).
			WithPorts(corev1ac.ServicePort().WithName("http").WithPort(port)))
	}

	It("is Gone for the object itself, and is not made again by its old live object", func(ctx SpecContext) {
		a, name := newBuiltin(), newName()
		created := apply(ctx, a, service(name, 80), nil)
		Expect(created.Outcome).To(Equal(ssa.Created))
		live := &corev1.Service{}
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, live)).To(Succeed())
		Expect(admin.Delete(ctx, live.DeepCopy())).To(Succeed())
		Expect(apply(ctx, a, service(name, 81), live)).To(Equal(ssa.Result{Outcome: ssa.Gone, Began: true}))
		Expect(apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(live), live.DeepCopy()))).To(BeTrue())

		By("leaving a later one of its name alone")
		Expect(apply(ctx, a, service(name, 80), nil).Outcome).To(Equal(ssa.Created))
		Expect(apply(ctx, a, service(name, 82), live)).To(Equal(ssa.Result{Outcome: ssa.Gone, Began: true}))
		fresh := &corev1.Service{}
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(live), fresh)).To(Succeed())
		Expect(fresh.Spec.Ports[0].Port).To(BeEquivalentTo(80))
	})

	It("is Gone for a custom resource itself too", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		a := newApplier(clock)
		sized := func(size int) config { return object("Thing", name, content{"spec": content{"size": size}}) }
		live := fetchThing(ctx, name)
		remove(ctx, "Thing", name)
		Expect(apply(ctx, a, sized(5), live)).To(Equal(ssa.Result{Outcome: ssa.Gone, Began: true}))
		recreate(ctx, "Thing", name)
		Expect(apply(ctx, a, sized(5), live)).To(Equal(ssa.Result{Outcome: ssa.Gone, Began: true}))
		Expect(field(fetchThing(ctx, name), "spec", "size")).To(BeEquivalentTo(1))
	})

	It("is Gone for a status that is applied without a live object", func(ctx SpecContext) {
		Expect(write(ctx, newWriter(newClock()), status(newName(), content{"s": "a"}), nil)).To(Equal(ssa.Result{Outcome: ssa.Gone, Began: true}))
	})
})

var _ = Describe("something else that is missing is an error, not Gone", func() {
	It("a status subresource", func(ctx SpecContext) {
		name := newObject(ctx, "Plain")
		_, err := newWriter(newClock()).Write(ctx, ssa.Intent{Desired: object("Plain", name, content{"status": content{"s": "a"}}), Live: fetch(ctx, "Plain", name)})
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
		Expect(ssa.IsTerminal(err)).To(BeFalse())
	})

	It("a namespace", func(ctx SpecContext) {
		name := newName()
		desired := object("Thing", name, content{"spec": content{"size": 1}})
		desired["metadata"] = content{"name": name, "namespace": "nowhere"}
		_, err := newApplier(newClock()).Apply(ctx, ssa.Intent{Desired: desired})
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
	})

	It("a namespace of the object's own name", func(ctx SpecContext) {
		desired := object("Thing", "nowhere", content{"spec": content{"size": 1}})
		desired["metadata"] = content{"name": "nowhere", "namespace": "nowhere"}
		_, err := newApplier(newClock()).Apply(ctx, ssa.Intent{Desired: desired})
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
	})
})
