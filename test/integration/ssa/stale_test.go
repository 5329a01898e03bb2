package ssa_test

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hduolab/quell/controller/ssa"
	"github.com/hduolab/quell/test/localcluster"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/applyconfigurations"
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

var _ = Describe("an API server that is restored from a backup", func() {
	var restored *localcluster.Cluster
	var c client.Client
	copyTo := func(ctx SpecContext, from, to string) {
		GinkgoHelper()
		Expect(restored.Kill(localcluster.Etcd)).To(Succeed())
		Expect(os.RemoveAll(to)).To(Succeed())
		Expect(os.CopyFS(to, os.DirFS(from))).To(Succeed())
		Expect(restored.Restart(ctx, localcluster.Etcd)).To(Succeed())
	}
	fetch := func(ctx SpecContext) *corev1.ConfigMap {
		GinkgoHelper()
		cm := &corev1.ConfigMap{}
		Expect(c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "config"}, cm)).To(Succeed())
		return cm
	}

	It("has its older versions believed after a minute, with and without a reader", func(ctx SpecContext) {
		var err error
		restored, err = localcluster.Start(ctx, localcluster.Options{ControlPlaneOnly: true, Log: GinkgoWriter})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(restored.Stop()).To(Succeed()) })
		data := filepath.Join(restored.DataDir(), "etcd")
		backup := filepath.Join(GinkgoT().TempDir(), "etcd")
		requests := &traffic{}
		cfg := restored.Config()
		cfg.Wrap(requests.over)
		c = newClient(cfg)
		clock := newClock()
		changed := func(o *ssa.Options) {
			o.Client, o.Reader, o.Types = c, c, applyconfigurations.NewTypeConverter(scheme)
		}
		says := func(text string) runtime.ApplyConfiguration {
			return corev1ac.ConfigMap("config", namespace).WithData(map[string]string{"text": text})
		}
		reading, blind := newApplier(clock, changed), newApplier(clock, changed, func(o *ssa.Options) { o.Reader = nil })
		apply(ctx, reading, says("old"), nil)
		copyTo(ctx, data, backup)
		for i := range 200 { // more versions than a start of the API server makes
			apply(ctx, reading, says(fmt.Sprint(i)), fetch(ctx), fmt.Sprint(i))
		}
		for _, a := range []*ssa.Applier{reading, blind} {
			apply(ctx, a, says("between"), fetch(ctx), "between")
			apply(ctx, a, says("new"), fetch(ctx), "new")
		}
		lost := fetch(ctx).ResourceVersion
		copyTo(ctx, backup, data)
		Expect(restored.Restart(ctx, localcluster.APIServer)).To(Succeed())

		live := fetch(ctx)
		Expect(live.Data).To(HaveKeyWithValue("text", "old"))
		for _, a := range []*ssa.Applier{reading, blind} {
			requests.requests()
			Expect(apply(ctx, a, says("new"), live, "new").Outcome).To(Equal(ssa.Unchanged), "it may be the cache that is late")
			Expect(requests.requests()).To(BeEmpty())
		}
		clock.Step(61 * time.Second)
		Expect(apply(ctx, reading, says("new"), live, "new").Outcome).To(Equal(ssa.Applied))
		Expect(fetch(ctx).Data).To(HaveKeyWithValue("text", "new"))
		Expect(apply(ctx, blind, says("new"), fetch(ctx), "new").Outcome).To(Equal(ssa.NoOp), "it cannot look, so it asks")
		requests.requests()
		for _, a := range []*ssa.Applier{reading, blind} {
			for range 3 {
				clock.Step(10 * time.Minute)
				live := fetch(ctx)
				metav1.SetMetaDataAnnotation(&live.ObjectMeta, "others", clock.Now().String())
				Expect(c.Update(ctx, live)).To(Succeed())
				Expect(apply(ctx, a, says("new"), live, "new").Outcome).To(Equal(ssa.Unchanged))
			}
		}
		Expect(requests.requests()).To(HaveLen(12), "those of the test")
		Expect(resourceversion.CompareResourceVersion(fetch(ctx).ResourceVersion, lost)).To(Equal(-1), "all of it at older versions")
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
