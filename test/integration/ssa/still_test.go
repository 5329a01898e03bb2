package ssa_test

import (
	"encoding/json"
	"math/rand/v2"
	"time"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/applyconfig"
	quellv1alpha1ac "github.com/hduolab/quell/applyconfig/quell/v1alpha1"
	"github.com/hduolab/quell/controller/ssa"
	"github.com/hduolab/quell/test/localcluster"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// expectNothingToApply expects that content is in place for a new process, and for an apply that is sent all the same.
func expectNothingToApply(ctx SpecContext, restarted func() *ssa.Applier, desired runtime.ApplyConfiguration, live client.Object) {
	GinkgoHelper()
	Expect(apply(ctx, restarted(), desired, live).Outcome).To(Equal(ssa.Unchanged))
	raw, err := json.Marshal(desired)
	Expect(err).NotTo(HaveOccurred())
	body := &unstructured.Unstructured{}
	Expect(body.UnmarshalJSON(raw)).To(Succeed())
	Expect(admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(body), client.FieldOwner(me), client.ForceOwnership)).To(Succeed())
	Expect(body.GetResourceVersion()).To(Equal(live.GetResourceVersion()))
}

var _ = Describe("a status that stands still", func() {
	It("costs one request, then none: repeated, after a restart, a day later", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		before, err := cluster.Mark()
		Expect(err).NotTo(HaveOccurred())
		w := newWriter(clock)
		live := written(ctx, w, name, rich())
		start := time.Now()
		for range 3 {
			clock.Step(1100 * time.Millisecond)
			Expect(write(ctx, w, status(name, rich()), live)).To(HaveField("Outcome", ssa.Unchanged))
		}
		nextSecond(start)
		clock.Step(24 * time.Hour)
		Expect(write(ctx, w, status(name, rich()), live).Sent).To(BeFalse())
		Expect(write(ctx, newWriter(clock), status(name, rich()), live)).To(HaveField("Outcome", ssa.Unchanged), "after a restart")
		quiet(ctx, live)
		served, err := cluster.Requests(before, localcluster.ByUserAgent("subject"), localcluster.Writes)
		Expect(err).NotTo(HaveOccurred())
		Expect(served).To(HaveLen(1), "the API server's own count")
	})

	// structured-merge-diff (merge/update.go, prune) takes a map in which it leaves nothing but empty map lists for one that is gone.
	It("keeps an empty map that the schema fills with defaults, of which every other apply would make nothing", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		desired, filled := content{"s": "text", "pool": content{}}, content{"size": int64(1), "members": []any{}}
		live := written(ctx, newWriter(clock), name, desired)
		Expect(field(live, "status", "pool")).To(Equal(filled))
		for range 2 {
			Expect(write(ctx, newWriter(clock), status(name, desired), live)).To(HaveField("Outcome", ssa.Unchanged))
			quiet(ctx, live)
		}
		for _, pool := range []OmegaMatcher{BeNil(), Equal(filled), BeNil(), Equal(filled)} {
			before := fetchThing(ctx, name)
			forceStatus(ctx, me, status(name, desired))
			after := fetchThing(ctx, name)
			Expect(after.GetResourceVersion()).NotTo(Equal(before.GetResourceVersion()))
			Expect(field(after, "status", "pool")).To(pool)
		}
	})

	// For the same reason an apply that empties a map takes it away, and the next one brings it back.
	It("has a map that is emptied in place after one call", func(ctx SpecContext) {
		a, name := newApplier(newClock()), newName()
		apply(ctx, a, box(name, content{"c": "x", "soft": content{"size": 1}, "volumes": []any{content{"name": "data"}}}), nil)
		emptied := box(name, content{"c": "x", "soft": content{}, "volumes": []any{}})
		Expect(apply(ctx, a, emptied, fetchBox(ctx, name)).Outcome).To(Equal(ssa.Applied))
		expectNothingToApply(ctx, func() *ssa.Applier { return newApplier(newClock()) }, emptied, fetchBox(ctx, name))
	})

	It("has a map of a Deployment that is emptied in place after one call", func(ctx SpecContext) {
		a, name := newBuiltin(), newName()
		desired := func(c *corev1ac.SecurityContextApplyConfiguration) *appsv1ac.DeploymentApplyConfiguration {
			return deployment(name, corev1ac.Container().WithName("web").WithImage("nginx").WithSecurityContext(c))
		}
		apply(ctx, a, desired(corev1ac.SecurityContext().WithReadOnlyRootFilesystem(true)), nil)
		emptied := desired(corev1ac.SecurityContext())
		Expect(apply(ctx, a, emptied, fetchDeployment(ctx, name)).Outcome).To(Equal(ssa.Applied))
		expectNothingToApply(ctx, newBuiltin, emptied, fetchDeployment(ctx, name))
	})

	DescribeTable("a value that could look different when it comes back costs no second request",
		func(ctx SpecContext, s content) {
			clock, name := newClock(), newThing(ctx)
			s = with(s, "j", 1)
			live := written(ctx, newWriter(clock), name, s)
			Expect(write(ctx, newWriter(clock), status(name, s), live)).To(Equal(ssa.Result{Outcome: ssa.Unchanged, Object: live, Began: true}))
			quiet(ctx, live)
		},
		Entry("zero counter", content{"i": 0}),
		Entry("integer as float", content{"i": 5.0}),
		Entry("float as integer", content{"ratio": 1}),
		Entry("exponent", content{"ratio": 1e3}),
		Entry("large integer", content{"l": int64(1)<<53 + 1}),
		Entry("false", content{"b": false}),
		Entry("empty string", content{"s": ""}),
		Entry("null on a nullable field", content{"nullable": nil}),
		Entry("empty set", content{"tags": []any{}}),
		Entry("empty atomic list", content{"steps": []any{}}),
		Entry("empty map list", content{"conditions": []any{}}),
		Entry("empty map", content{"labels": content{}}),
		Entry("empty nested struct with a default", content{"nested": content{}}),
		Entry("default value sent", content{"defaulted": "blue"}),
		Entry("other value than the default", content{"defaulted": "red"}),
		Entry("default key left out", content{"ports": []any{content{"port": 1, "name": "a"}}}),
		Entry("int-or-string as integer", content{"port": 80}),
		Entry("quantity-like string", content{"quantity": "1000m"}),
		Entry("time with an offset", content{"at": "2026-01-02T03:04:05.123456789+02:00"}),
		Entry("preserved unknown fields", content{"free": content{"list": []any{1, "a", nil}, "empty": content{}, "null": nil}}),
		Entry("set of integers and strings that print alike", content{"mixed": []any{1, "1"}}),
	)

	It("costs one request, then none, when it is empty", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		live := written(ctx, newWriter(clock), name, content{})
		Expect(write(ctx, newWriter(clock), status(name, content{}), live).Outcome).To(Equal(ssa.Unchanged))
		quiet(ctx, live)
	})

	It("takes an empty set or map list for nothing, since nobody can own it", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		w := newWriter(clock)
		live := written(ctx, w, name, content{"s": "a", "tags": []any{"x"}})
		Expect(write(ctx, w, status(name, content{"s": "a", "tags": []any{}}), live).Paths()).To(Equal([]string{`.status.tags[="x"]`}))
		live = fetchThing(ctx, name)
		Expect(field(live, "status")).NotTo(HaveKeyWithValue("tags", Not(BeEmpty())))
		wire.requests()
		Expect(write(ctx, w, status(name, content{"s": "a", "conditions": []any{}}), live).Outcome).To(Equal(ssa.Unchanged))
		quiet(ctx, live)
	})

	It("costs nothing when only the generation moved", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		w := newWriter(clock)
		live := written(ctx, w, name, content{"s": "a"})
		live.Object["spec"] = content{"size": 2}
		Expect(admin.Update(ctx, live)).To(Succeed())
		live = fetchThing(ctx, name)
		Expect(live.GetGeneration()).To(BeEquivalentTo(2))
		Expect(write(ctx, w, status(name, content{"s": "a"}), live)).To(HaveField("Outcome", ssa.Unchanged))
		quiet(ctx, live)
	})

	It("writes observedGeneration once when the generation moved", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		w := newWriter(clock)
		live := written(ctx, w, name, content{"l": 1})
		live.Object["spec"] = content{"size": 2}
		Expect(admin.Update(ctx, live)).To(Succeed())
		for range 3 {
			write(ctx, w, status(name, content{"l": 2}), fetchThing(ctx, name))
		}
		Expect(wire.requests()).To(HaveLen(1))
	})

	It("costs nothing in 1,000 calls whose lists come in the order of Go maps", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		w := newWriter(clock)
		live := written(ctx, w, name, shuffled())
		for i := range 1000 {
			if i%10 == 0 {
				w = newWriter(clock) // a restart forgets what was sent
			}
			Expect(write(ctx, w, status(name, shuffled()), live).Outcome).To(Equal(ssa.Unchanged))
		}
		quiet(ctx, live)
	})

	It("keeps the order that is there, so that two owners with other orders do not flip", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		list := func(kinds ...string) content {
			var conditions, tags []any
			for _, k := range kinds {
				c := condition(k, "True", "Same", "")
				c["lastTransitionTime"] = "2026-03-01T12:00:00Z"
				conditions, tags = append(conditions, c), append(tags, k)
			}
			return content{"conditions": conditions, "tags": tags}
		}
		forceStatus(ctx, they, status(name, list("C", "B", "A")))
		theirs := fetchThing(ctx, name)
		w := newWriter(clock)
		Expect(write(ctx, w, status(name, list("A", "B", "C")), theirs).Outcome).To(Equal(ssa.Applied), "becomes the second owner")
		live := fetchThing(ctx, name)
		Expect(field(live, "status")).To(Equal(field(theirs, "status")), "same order")
		wire.requests()
		for range 3 {
			start := time.Now()
			forceStatus(ctx, they, status(name, list("C", "B", "A")))
			write(ctx, w, status(name, list("A", "B", "C")), fetchThing(ctx, name))
			nextSecond(start)
		}
		quiet(ctx, live)
		forceStatus(ctx, they, status(name, list("B", "C", "A")))
		moved := fetchThing(ctx, name)
		Expect(field(moved, "status", "tags")).To(Equal([]any{"B", "C", "A"}))
		Expect(write(ctx, newWriter(clock), status(name, list("A", "B", "C")), moved).Outcome).To(Equal(ssa.Unchanged))
		with := list("A", "B", "C", "0")
		Expect(write(ctx, w, status(name, with), moved).Outcome).To(Equal(ssa.Applied))
		Expect(field(fetchThing(ctx, name), "status", "tags")).To(Equal([]any{"B", "C", "A", "0"}), "live order first, then the new item")
	})

	It("writes an atomic list whose order changed", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		w := newWriter(clock)
		live := written(ctx, w, name, content{"steps": []any{"a", "b"}})
		result := write(ctx, w, status(name, content{"steps": []any{"b", "a"}}), live)
		Expect(result.Outcome).To(Equal(ssa.Applied))
		Expect(result.Paths()).To(Equal([]string{".status.steps"}))
	})

	It("removes a field that is not reported any more, and only that", func(ctx SpecContext) {
		clock, name := newClock(), newThing(ctx)
		w := newWriter(clock)
		forceStatus(ctx, they, status(name, content{"j": 7}))
		live := written(ctx, w, name, content{"s": "a", "i": 1, "tags": []any{"x", "y"}})
		result := write(ctx, w, status(name, content{"s": "a", "tags": []any{"y"}}), live)
		Expect(result.String()).To(Equal(`Applied: .status.i removed; .status.tags[="x"] removed`))
		live = fetchThing(ctx, name)
		Expect(field(live, "status")).To(Equal(content{"s": "a", "j": int64(7), "tags": []any{"y"}, "defaulted": "blue"}))
		Expect(write(ctx, w, status(name, content{"s": "a", "tags": []any{"y"}}), live).Outcome).To(Equal(ssa.Unchanged))
	})
})

// shuffled is one status whose map and set lists come in another order each time.
func shuffled() content {
	kinds := map[string]bool{"A": true, "B": false, "C": true, "D": false, "E": true}
	s := content{"labels": content{}}
	var conditions, tags, ports []any
	for k, is := range kinds {
		c := condition(k, map[bool]string{true: "True", false: "False"}[is], "Because", "it is")
		conditions, tags = append(conditions, c), append(tags, "tag-"+k)
		s["labels"].(content)[k] = "v"
	}
	for _, i := range rand.Perm(5) {
		ports = append(ports, content{"port": i})
	}
	s["conditions"], s["tags"], s["ports"] = conditions, tags, ports
	return s
}

var _ = Describe("a status of a typed kind", func() {
	typedWriter := func() *ssa.StatusWriter {
		return newWriter(newClock(), func(o *ssa.StatusOptions) { o.Types = applyconfig.NewTypeConverter(scheme) })
	}
	newApp := func(ctx SpecContext) *quellv1alpha1.App {
		app := &quellv1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: newName()}, Spec: quellv1alpha1.AppSpec{Image: "nginx"}}
		Expect(admin.Create(ctx, app)).To(Succeed())
		return app
	}

	It("costs one request, then none, zero counters included", func(ctx SpecContext) {
		app := newApp(ctx)
		desired := func() *quellv1alpha1ac.AppApplyConfiguration {
			return quellv1alpha1ac.App(app.Name, namespace).WithStatus(quellv1alpha1ac.AppStatus().WithReplicas(0).WithReadyReplicas(0).
				WithObservedGeneration(1).WithPhase(quellv1alpha1.PhasePending).WithImages("a", "b").WithConditions(
				metav1ac.Condition().WithType("Ready").WithStatus(metav1.ConditionFalse).WithReason("Creating").WithMessage("")))
		}
		w := typedWriter()
		Expect(write(ctx, w, desired(), app).Outcome).To(Equal(ssa.Applied))
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(app), app)).To(Succeed())
		Expect(app.Status.Replicas).To(HaveValue(BeZero()))
		Expect(write(ctx, w, desired(), app).Outcome).To(Equal(ssa.Unchanged))
		Expect(write(ctx, typedWriter(), desired(), app).Outcome).To(Equal(ssa.Unchanged), "after a restart")
		Expect(wire.requests()).To(HaveLen(1))
	})

	It("costs one request, then none, with an empty list that its Go type leaves out", func(ctx SpecContext) {
		app := newApp(ctx)
		desired := config{"apiVersion": "quell.dev/v1alpha1", "kind": "App", "metadata": content{"name": app.Name, "namespace": namespace},
			"status": content{"images": []any{}, "replicas": 0}}
		w := typedWriter()
		Expect(write(ctx, w, desired, app).Outcome).To(Equal(ssa.Applied))
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(app), app)).To(Succeed())
		Expect(write(ctx, w, desired, app).Outcome).To(Equal(ssa.Unchanged))
		Expect(write(ctx, typedWriter(), desired, app).Outcome).To(Equal(ssa.Unchanged), "after a restart")
		Expect(wire.requests()).To(HaveLen(1))
	})
})
