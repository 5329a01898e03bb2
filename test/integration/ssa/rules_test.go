package ssa_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/hduolab/quell/controller/ssa"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/applyconfigurations"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

const imagePath = `.spec.template.spec.containers[name="web"].image`

// by are rules with one default and exceptions from it.
func by(standard ssa.Rule, exceptions ...ssa.PathRule) ssa.Rules {
	return ssa.Rules{Default: standard, Paths: exceptions}
}

func ruled(ctx context.Context, a *ssa.Applier, rules ssa.Rules, desired runtime.ApplyConfiguration, live client.Object) ssa.Result {
	GinkgoHelper()
	result, err := a.Apply(ctx, ssa.Intent{Desired: desired, Live: live, Rules: rules})
	Expect(err).NotTo(HaveOccurred())
	return result
}

// image is a Deployment with so many replicas of a container.
func image(name, image string, replicas int32) *appsv1ac.DeploymentApplyConfiguration {
	d := deployment(name, corev1ac.Container().WithName("web").WithImage(image))
	d.Spec.WithReplicas(replicas)
	return d
}

// newDeployment is one that a has applied.
func newDeployment(ctx SpecContext, a *ssa.Applier) string {
	GinkgoHelper()
	name := newName()
	Expect(apply(ctx, a, image(name, "nginx:1", 3), nil).Outcome).To(Equal(ssa.Created))
	wire.requests()
	return name
}

// update lets another manager change an object by update.
func update[T client.Object](ctx context.Context, manager string, o T, change func(T)) T {
	GinkgoHelper()
	change(o)
	Expect(admin.Update(ctx, o, client.FieldOwner(manager))).To(Succeed())
	return o
}

// scale lets another manager scale a Deployment as kubectl scale does.
func scale(ctx SpecContext, manager, name string, replicas int32) {
	GinkgoHelper()
	d, s := fetchDeployment(ctx, name), &autoscalingv1.Scale{}
	Expect(admin.SubResource("scale").Get(ctx, d, s)).To(Succeed())
	s.Spec.Replicas = replicas
	Expect(admin.SubResource("scale").Update(ctx, d, client.WithSubResourceBody(s), client.FieldOwner(manager))).To(Succeed())
}

// holds lets another manager apply replicas, or nothing but a label.
func holds(ctx SpecContext, manager, name string, replicas ...int32) {
	GinkgoHelper()
	d := appsv1ac.Deployment(name, namespace).WithLabels(map[string]string{"held": "yes"})
	for _, n := range replicas {
		d.WithSpec(appsv1ac.DeploymentSpec().WithReplicas(n))
	}
	Expect(admin.Apply(ctx, d, client.FieldOwner(manager), client.ForceOwnership)).To(Succeed())
}

func texts(reasons []ssa.Reason) []string {
	var list []string
	for _, r := range reasons {
		list = append(list, r.String())
	}
	return list
}

func replicasOf(ctx SpecContext, name string) int32 { return *fetchDeployment(ctx, name).Spec.Replicas }

var _ = Describe("the rule Yield", func() {
	DescribeTable("lets the value of another writer stand, at no cost, until that writer gives it up",
		func(ctx SpecContext, strike func(ctx SpecContext, name string, replicas int32), release func(ctx SpecContext, name string), owner string) {
			a, rules := newBuiltin(), by(ssa.Yield)
			name := newDeployment(ctx, a)
			for _, theirs := range []int32{7, 1, 5} {
				strike(ctx, name, theirs)
				live := fetchDeployment(ctx, name)
				for _, a := range []*ssa.Applier{a, a, newBuiltin()} {
					result := ruled(ctx, a, rules, image(name, "nginx:1", 3), live)
					Expect(result.Outcome).To(Equal(ssa.Unchanged), "%s, %v", result, live.ManagedFields)
					Expect(texts(result.Yielded)).To(Equal([]string{".spec.replicas yielded to " + owner}))
				}
				Expect(wire.requests()).To(BeEmpty())
				Expect(replicasOf(ctx, name)).To(Equal(theirs))
			}
			By("applying all the rest")
			result := ruled(ctx, a, rules, image(name, "nginx:2", 3), fetchDeployment(ctx, name))
			Expect(result.Outcome).To(Equal(ssa.Applied))
			Expect(words(result)).To(Equal([]string{imagePath + " changed"}))
			Expect(result.Yielded).To(HaveLen(1))
			Expect(wire.requests()).To(HaveLen(1))
			Expect(replicasOf(ctx, name)).To(BeEquivalentTo(5))

			By("stating it again")
			release(ctx, name)
			result = ruled(ctx, a, rules, image(name, "nginx:2", 3), fetchDeployment(ctx, name))
			Expect(result.Outcome).To(Equal(ssa.Applied))
			Expect(result.Yielded).To(BeEmpty())
			Expect(replicasOf(ctx, name)).To(BeEquivalentTo(3))
			Expect(wire.requests()).To(HaveLen(1))
			Expect(ruled(ctx, a, rules, image(name, "nginx:2", 3), fetchDeployment(ctx, name)).Outcome).To(Equal(ssa.Unchanged))
		},
		Entry("by apply", func(ctx SpecContext, name string, n int32) { holds(ctx, they, name, n) },
			func(ctx SpecContext, name string) { holds(ctx, they, name) }, `"rival" (Apply)`),
		Entry("by update", func(ctx SpecContext, name string, n int32) {
			update(ctx, they, fetchDeployment(ctx, name), func(d *appsv1.Deployment) { d.Spec.Replicas = &n })
		}, func(ctx SpecContext, name string) {
			holds(ctx, "other", name, 2)
			holds(ctx, "other", name)
		}, `"rival" (Update)`),
		Entry("by update of scale", func(ctx SpecContext, name string, n int32) { scale(ctx, they, name, n) },
			func(ctx SpecContext, name string) {
				holds(ctx, "other", name, 1)
				holds(ctx, "other", name)
			}, `"rival" (Update, scale)`),
	)

	It("keeps stating a field that others own with the same value, and lets go of it only for theirs", func(ctx SpecContext) {
		a, rules := newBuiltin(), by(ssa.Yield)
		name := newDeployment(ctx, a)
		holds(ctx, they, name, 3)
		live := fetchDeployment(ctx, name)
		result := ruled(ctx, a, rules, image(name, "nginx:1", 3), live)
		Expect(result.Outcome).To(Equal(ssa.Unchanged))
		Expect(result.Yielded).To(BeEmpty())
		Expect(wire.requests()).To(BeEmpty())

		By("wanting another value")
		result = ruled(ctx, a, rules, image(name, "nginx:1", 4), live)
		Expect(texts(result.Yielded)).To(Equal([]string{`.spec.replicas yielded to "rival" (Apply)`}))
		Expect(result.Outcome).To(Equal(ssa.Applied), "our share is given up")
		Expect(replicasOf(ctx, name)).To(BeEquivalentTo(3))
		By("wanting theirs again, with which there is no conflict")
		result = ruled(ctx, a, rules, image(name, "nginx:1", 3), fetchDeployment(ctx, name))
		Expect(result.Yielded).To(BeEmpty())
		holds(ctx, they, name)
		Expect(replicasOf(ctx, name)).To(BeEquivalentTo(3), "it is ours too")
		Expect(wire.requests()).To(HaveLen(2))
	})

	It("never gives up a field whose other owner is gone by the time of the write", func(ctx SpecContext) {
		a, rules := newBuiltin(), by(ssa.Yield)
		name := newDeployment(ctx, a)
		holds(ctx, they, name, 3)
		old := fetchDeployment(ctx, name)
		holds(ctx, they, name)
		for range 2 { // the second time it is known
			result := ruled(ctx, a, rules, image(name, "nginx:1", 4), old)
			Expect(result.Yielded).To(BeEmpty())
			Expect(replicasOf(ctx, name)).To(BeEquivalentTo(4))
		}
		Expect(wire.requests()).To(HaveLen(3), "refused for its version, read, applied")
		d := fetchDeployment(ctx, name)
		Expect(d.Generation).To(BeEquivalentTo(2), "it never had any other value")
	})

	It("learns from the API server what a cache that is behind does not say", func(ctx SpecContext) {
		a, rules := newBuiltin(), by(ssa.Yield)
		name := newDeployment(ctx, a)
		old := fetchDeployment(ctx, name)
		holds(ctx, they, name, 7)
		result := ruled(ctx, a, rules, image(name, "nginx:2", 4), old)
		Expect(result.Outcome).To(Equal(ssa.Applied))
		Expect(texts(result.Yielded)).To(Equal([]string{`.spec.replicas yielded to "rival" (Apply)`}))
		Expect(verbs(wire.requests())).To(Equal("PATCH PATCH GET PATCH"), "a conflict, an outdated version, the new one")
		Expect(replicasOf(ctx, name)).To(BeEquivalentTo(7))
	})

	DescribeTable("knows without a request that a zero which the API server did not keep is another's",
		func(ctx SpecContext, read func(ctx SpecContext, name string) client.Object) {
			name := newDeployment(ctx, newBuiltin())
			theirs := appsv1ac.Deployment(name, namespace).WithSpec(appsv1ac.DeploymentSpec().WithMinReadySeconds(0))
			Expect(admin.Apply(ctx, theirs, client.FieldOwner(they))).To(Succeed())
			ours := image(name, "nginx:1", 3)
			ours.Spec.WithMinReadySeconds(0)
			for _, outcome := range []struct {
				ssa.Rule
				ssa.Outcome
			}{{ssa.Yield, ssa.Unchanged}, {ssa.Report, ssa.Conflicted}} {
				Expect(ruled(ctx, newBuiltin(), by(outcome.Rule), ours, read(ctx, name)).Outcome).To(Equal(outcome.Outcome))
			}
			Expect(wire.requests()).To(BeEmpty())
			err := admin.Apply(ctx, ours, client.FieldOwner(me))
			Expect(fieldowners.Conflicts(err)).To(HaveExactElements(HaveField("Path", ".spec.minReadySeconds")), "%v", err)
			Expect(ruled(ctx, newBuiltin(), by(ssa.Force), ours, read(ctx, name)).Sent).To(BeTrue())
			Expect(ruled(ctx, newBuiltin(), by(ssa.Force), ours, read(ctx, name)).Outcome).To(Equal(ssa.Unchanged))
		},
		Entry("typed", func(ctx SpecContext, name string) client.Object { return fetchDeployment(ctx, name) }),
		Entry("unstructured", func(ctx SpecContext, name string) client.Object {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
			Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, u)).To(Succeed())
			return u
		}),
	)

	It("leaves the keys of list items, and atomic lists as a whole, in one piece", func(ctx SpecContext) {
		a, name := newBuiltin(), newName()
		container := corev1ac.Container().WithName("web").WithImage("nginx").WithCommand("a", "b").
			WithEnv(corev1ac.EnvVar().WithName("A").WithValue("1"), corev1ac.EnvVar().WithName("B").WithValue("2")).
			WithResources(corev1ac.ResourceRequirements().WithLimits(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}))
		apply(ctx, a, deployment(name, container), nil)
		live := update(ctx, they, fetchDeployment(ctx, name), func(d *appsv1.Deployment) {
			c := &d.Spec.Template.Spec.Containers[0]
			c.Env[0].Value, c.Command = "theirs", []string{"c"}
			c.Resources.Limits[corev1.ResourceCPU] = resource.MustParse("2")
		})
		wire.requests()
		result := ruled(ctx, a, by(ssa.Yield), deployment(name, container), live)
		Expect(result.Outcome).To(Equal(ssa.Unchanged))
		const path = `.spec.template.spec.containers[name="web"]`
		Expect(texts(result.Yielded)).To(Equal([]string{
			path + `.command yielded to "rival" (Update)`, path + `.env[name="A"].value yielded to "rival" (Update)`,
			path + `.resources.limits.cpu yielded to "rival" (Update)`,
		}))
		result = ruled(ctx, a, by(ssa.Yield), deployment(name, container.WithImage("nginx:2")), live)
		Expect(result.Outcome).To(Equal(ssa.Applied))
		c := fetchDeployment(ctx, name).Spec.Template.Spec.Containers[0]
		Expect(c.Env).To(Equal([]corev1.EnvVar{{Name: "A", Value: "theirs"}, {Name: "B", Value: "2"}}))
		Expect(c.Command).To(Equal([]string{"c"}))
		Expect(wire.requests()).To(HaveLen(1))
	})

	It("tells list items apart whose keys differ in a default alone", func(ctx SpecContext) {
		a, name := newBuiltin(), newName()
		dns := func(udp int32) *corev1ac.ServiceApplyConfiguration {
			tcp := corev1ac.ServicePort().WithName("tcp").WithPort(53).WithTargetPort(intstr.FromInt32(5353))
			return servicePorts(name, tcp, corev1ac.ServicePort().WithName("udp").WithPort(53).WithProtocol(corev1.ProtocolUDP).WithTargetPort(intstr.FromInt32(udp)))
		}
		targets := func() (list []int32) {
			for _, p := range fetchService(ctx, name).Spec.Ports {
				list = append(list, p.TargetPort.IntVal)
			}
			return list
		}
		apply(ctx, a, dns(5353), nil)
		Expect(apply(ctx, a, dns(5354), fetchService(ctx, name)).Outcome).To(Equal(ssa.Applied))
		Expect(targets()).To(Equal([]int32{5353, 5354}))

		update(ctx, they, fetchService(ctx, name), func(s *corev1.Service) { s.Spec.Ports[1].TargetPort = intstr.FromInt32(9999) })
		wire.requests()
		result := ruled(ctx, a, by(ssa.Yield), dns(5354), fetchService(ctx, name))
		Expect(result.Outcome).To(Equal(ssa.Unchanged))
		Expect(texts(result.Yielded)).To(Equal([]string{`.spec.ports[port=53,protocol="UDP"].targetPort yielded to "rival" (Update)`}))
		Expect(wire.requests()).To(BeEmpty())
		result = ruled(ctx, a, by(ssa.Yield), dns(5354).WithLabels(map[string]string{"a": "b"}), fetchService(ctx, name))
		Expect(result.Outcome).To(Equal(ssa.Applied))
		Expect(targets()).To(Equal([]int32{5353, 9999}), "the other item is still ours")
	})

	It("leaves an item alone that somebody wrote twice, and the rest is applied", func(ctx SpecContext) {
		a, name := newBuiltin(), newName()
		container := corev1ac.Container().WithName("web").WithImage("nginx").WithEnv(corev1ac.EnvVar().WithName("A").WithValue("1"))
		apply(ctx, a, deployment(name, corev1ac.Container().WithName("web").WithImage("nginx")), nil)
		live := update(ctx, they, fetchDeployment(ctx, name), func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "A", Value: "2"}}
		})
		wire.requests()
		desired := deployment(name, container).WithLabels(map[string]string{"new": "label"})
		result := ruled(ctx, a, by(ssa.Yield), desired, live)
		Expect(result.Outcome).To(Equal(ssa.Applied))
		Expect(texts(result.Yielded)).To(Equal([]string{`.spec.template.spec.containers[name="web"].env[name="A"] yielded to "rival" (Update)`}))
		Expect(len(wire.requests())).To(BeNumerically("<=", 2))
		for _, a := range []*ssa.Applier{a, newBuiltin()} {
			Expect(ruled(ctx, a, by(ssa.Yield), desired, fetchDeployment(ctx, name)).Sent).To(BeFalse())
		}
		Expect(fetchDeployment(ctx, name).Labels).To(HaveKeyWithValue("new", "label"))
	})

	It("is told of an empty map that others applied and the API server did not keep, and other rules are not in its way", func(ctx SpecContext) {
		name := newDeployment(ctx, newBuiltin())
		theirs := deployment(name, corev1ac.Container().WithName("web").WithResources(corev1ac.ResourceRequirements().WithLimits(corev1.ResourceList{})))
		theirs.Spec.Template.Spec.Containers[0].Resources.Limits = &corev1.ResourceList{}
		theirs.Spec.WithReplicas(3)
		Expect(admin.Apply(ctx, theirs, client.FieldOwner(they))).To(Succeed())
		limits := corev1ac.ResourceRequirements().WithLimits(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")})
		ours := deployment(name, corev1ac.Container().WithName("web").WithImage("nginx:1").WithResources(limits))
		ours.Spec.WithReplicas(3)
		path := fieldowners.Conflict{Owner: fieldowners.Owner{Manager: they, Operation: "Apply"}, Path: `.spec.template.spec.containers[name="web"].resources.limits`}
		Expect(fieldowners.Conflicts(admin.Apply(ctx, ours, client.FieldOwner(me)))).To(ConsistOf(path), "what the API server says")
		wire.requests()
		Expect(ruled(ctx, newBuiltin(), by(ssa.Report), ours, fetchDeployment(ctx, name)).Conflicts).To(ConsistOf(path))
		result := ruled(ctx, newBuiltin(), by(ssa.Yield), ours, fetchDeployment(ctx, name))
		Expect(texts(result.Yielded)).To(Equal([]string{path.Path + ` yielded to "rival" (Apply)`}))
		Expect(wire.requests()).To(BeEmpty())
		result = ruled(ctx, newBuiltin(), by("", ssa.PathRule{Path: ".spec.replicas", Rule: ssa.Yield}), ours, fetchDeployment(ctx, name))
		Expect(result.Outcome).To(Equal(ssa.Applied))
		Expect(fetchDeployment(ctx, name).Spec.Template.Spec.Containers[0].Resources.Limits.Cpu().String()).To(Equal("1"))
	})

	It("is obeyed at a bounded cost although the cache drops managedFields", func(ctx SpecContext) {
		clock := newClock()
		a := newApplier(clock, func(o *ssa.Options) { o.Types = applyconfigurations.NewTypeConverter(scheme) })
		name := newDeployment(ctx, a)
		holds(ctx, they, name, 7)
		for i := range 50 {
			clock.Step(100 * time.Millisecond)
			update(ctx, they, fetchDeployment(ctx, name), func(d *appsv1.Deployment) { d.Annotations = map[string]string{"round": fmt.Sprint(i)} })
			live := fetchDeployment(ctx, name)
			live.ManagedFields = nil
			ruled(ctx, a, by(ssa.Yield), image(name, "nginx:1", 3), live)
			Expect(replicasOf(ctx, name)).To(BeEquivalentTo(7))
		}
		Expect(len(wire.requests())).To(BeNumerically("<=", 3*(2+ssa.DefaultContentionPace.Free)))
	})
})

var _ = Describe("the rule Report", func() {
	It("applies nothing, at no cost, says whose the field is, and goes on as soon as nobody holds it", func(ctx SpecContext) {
		a, rules := newBuiltin(), by(ssa.Report)
		name := newDeployment(ctx, a)
		holds(ctx, they, name, 7)
		live := fetchDeployment(ctx, name)
		for _, a := range []*ssa.Applier{a, a, newBuiltin()} {
			result := ruled(ctx, a, rules, image(name, "nginx:2", 3), live)
			Expect(result.Outcome).To(Equal(ssa.Conflicted))
			Expect(result.Conflicts).To(Equal([]fieldowners.Conflict{{Path: ".spec.replicas", Owner: fieldowners.Owner{Manager: they, Operation: "Apply"}}}))
		}
		Expect(wire.requests()).To(BeEmpty())
		holds(ctx, they, name)
		Expect(ruled(ctx, a, rules, image(name, "nginx:2", 3), fetchDeployment(ctx, name)).Outcome).To(Equal(ssa.Applied))
		Expect(wire.requests()).To(HaveLen(1))
	})

	It("holds at creation against somebody who was faster", func(ctx SpecContext) {
		a, name := newBuiltin(), newName()
		Expect(admin.Apply(ctx, image(name, "theirs", 1), client.FieldOwner(they))).To(Succeed())
		result := ruled(ctx, a, by(ssa.Report), image(name, "nginx:1", 1), nil)
		Expect(result.Outcome).To(Equal(ssa.Conflicted))
		Expect(result.Conflicts).To(HaveExactElements(HaveField("Path", imagePath)))
		Expect(fetchDeployment(ctx, name).ManagedFields).NotTo(ContainElement(HaveField("Manager", me)))
	})
})

var _ = Describe("rules by path", func() {
	strike := func(ctx SpecContext, name string) *appsv1.Deployment {
		return update(ctx, they, fetchDeployment(ctx, name), func(d *appsv1.Deployment) {
			*d.Spec.Replicas, d.Spec.Template.Spec.Containers[0].Image = 7, "theirs"
		})
	}
	DescribeTable("let the longest that fits a field count", func(ctx SpecContext, rules ssa.Rules, outcome ssa.Outcome, replicas int, img string, requests int) {
		a := newBuiltin()
		name := newDeployment(ctx, a)
		live := strike(ctx, name)
		Expect(ruled(ctx, a, rules, image(name, "nginx:1", 3), live).Outcome).To(Equal(outcome))
		d := fetchDeployment(ctx, name)
		Expect(*d.Spec.Replicas).To(BeEquivalentTo(replicas))
		Expect(d.Spec.Template.Spec.Containers[0].Image).To(Equal(img))
		Expect(wire.requests()).To(HaveLen(requests))
		for _, a := range []*ssa.Applier{a, newBuiltin()} {
			Expect(ruled(ctx, a, rules, image(name, "nginx:1", 3), d).Outcome).To(Or(Equal(ssa.Unchanged), Equal(ssa.Conflicted)))
		}
		Expect(wire.requests()).To(BeEmpty())
	},
		Entry("none", by(""), ssa.Applied, 3, "nginx:1", 1),
		Entry("all Force", by(ssa.Force, ssa.PathRule{Path: ".spec", Rule: ssa.Force}), ssa.Applied, 3, "nginx:1", 1),
		Entry("Force but one field", by(ssa.Force, ssa.PathRule{Path: ".spec.replicas", Rule: ssa.Yield}), ssa.Applied, 7, "nginx:1", 2),
		Entry("Yield but one field", by(ssa.Yield, ssa.PathRule{Path: imagePath, Rule: ssa.Force}), ssa.Applied, 7, "nginx:1", 2),
		Entry("a longer and a shorter one", by(ssa.Force,
			ssa.PathRule{Path: imagePath, Rule: ssa.Force}, ssa.PathRule{Path: ".spec", Rule: ssa.Yield}), ssa.Applied, 7, "nginx:1", 2),
		Entry("the other way round", by(ssa.Force,
			ssa.PathRule{Path: ".spec.template", Rule: ssa.Yield}, ssa.PathRule{Path: ".spec", Rule: ssa.Force}), ssa.Applied, 3, "theirs", 2),
		Entry("one that reports among others", by(ssa.Force, ssa.PathRule{Path: imagePath, Rule: ssa.Report}), ssa.Conflicted, 7, "theirs", 0),
		Entry("one that reports another field", by(ssa.Yield, ssa.PathRule{Path: ".spec.template.metadata", Rule: ssa.Report}), ssa.Unchanged, 7, "theirs", 0),
		Entry("of another item", by(ssa.Yield, ssa.PathRule{Path: `.spec.template.spec.containers[name="side"]`, Rule: ssa.Report}), ssa.Unchanged, 7, "theirs", 0),
	)

	It("may change while the conflict stands, in both directions", func(ctx SpecContext) {
		a := newBuiltin()
		name := newDeployment(ctx, a)
		strike(ctx, name)
		for _, step := range []struct {
			rules    ssa.Rules
			outcome  ssa.Outcome
			requests int
		}{
			{by(ssa.Yield), ssa.Unchanged, 0},
			{by(ssa.Report), ssa.Conflicted, 0},
			{by(ssa.Yield), ssa.Unchanged, 0},
			{by(ssa.Force), ssa.Applied, 1},
			{by(ssa.Yield), ssa.Unchanged, 0},
			{by(ssa.Report), ssa.Unchanged, 0},
		} {
			result := ruled(ctx, a, step.rules, image(name, "nginx:1", 3), fetchDeployment(ctx, name))
			Expect(result.Outcome).To(Equal(step.outcome), "%v", step.rules)
			Expect(wire.requests()).To(HaveLen(step.requests), "%v", step.rules)
		}
		Expect(replicasOf(ctx, name)).To(BeEquivalentTo(3))
	})

	It("do not let anything be taken that somebody took since they were looked at", func(ctx SpecContext) {
		a := newBuiltin()
		name := newDeployment(ctx, a)
		live := update(ctx, they, fetchDeployment(ctx, name), func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "theirs" })
		wire.breakWith(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			if r.URL.Query().Get("force") == "true" {
				wire.heal()
				holds(ctx, "other", name, 7)
			}
			return next.RoundTrip(r)
		})
		result := ruled(ctx, a, by(ssa.Force, ssa.PathRule{Path: ".spec.replicas", Rule: ssa.Yield}), image(name, "nginx:1", 3), live)
		Expect(result.Outcome).To(Equal(ssa.Applied))
		Expect(texts(result.Yielded)).To(Equal([]string{`.spec.replicas yielded to "other" (Apply)`}))
		d := fetchDeployment(ctx, name)
		Expect(*d.Spec.Replicas).To(BeEquivalentTo(7))
		Expect(d.Spec.Template.Spec.Containers[0].Image).To(Equal("nginx:1"))
		Expect(verbs(wire.requests())).To(Equal("PATCH PATCH GET PATCH PATCH"), "a conflict, an outdated version, and over again")
	})

	It("that cannot be read are a terminal error which names the path, and nothing is sent", func(ctx SpecContext) {
		a := newBuiltin()
		name := newDeployment(ctx, a)
		live := strike(ctx, name)
		_, err := a.Apply(ctx, ssa.Intent{Desired: image(name, "nginx:1", 3), Live: live, Rules: by(ssa.Force, ssa.PathRule{Path: ".spec.containers[app]", Rule: ssa.Yield})})
		Expect(err).To(terminal("conflict rule", ".spec.containers[app]"))
		Expect(wire.requests()).To(BeEmpty())
	})

	It("are counted by rule", func(ctx SpecContext) {
		before := counted(ctx)
		a := newBuiltin()
		name := newDeployment(ctx, a)
		live := strike(ctx, name)
		for range 3 {
			ruled(ctx, a, by(ssa.Yield), image(name, "nginx:1", 3), live)
		}
		for range 3 {
			ruled(ctx, a, by(ssa.Report), image(name, "nginx:1", 3), live)
		}
		ruled(ctx, a, by(ssa.Force), image(name, "nginx:1", 3), live)
		after := counted(ctx)
		for _, rule := range []string{"Force", "Yield", "Report"} {
			Expect(after[rule]-before[rule]).To(BeEquivalentTo(2), rule)
		}
	})
})

// counted are the conflicting fields of Deployments by rule.
func counted(context.Context) map[string]float64 {
	GinkgoHelper()
	families, err := metrics.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	counts := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "quell_ssa_conflicting_fields_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["kind"] == "Deployment" {
				counts[labels["rule"]] += m.GetCounter().GetValue()
			}
		}
	}
	return counts
}

func servicePorts(name string, ports ...*corev1ac.ServicePortApplyConfiguration) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(name, namespace).WithSpec(corev1ac.ServiceSpec().WithSelector(map[string]string{"app": name}).WithPorts(ports...))
}

func fetchService(ctx context.Context, name string) *corev1.Service {
	GinkgoHelper()
	s := &corev1.Service{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, s)).To(Succeed())
	return s
}

func numbers(s *corev1.Service) []int32 {
	var list []int32
	for _, p := range s.Spec.Ports {
		list = append(list, p.Port)
	}
	slices.Sort(list)
	return list
}

// kinds are the verbs of requests.
func verbs(requests []string) string {
	words := make([]string, len(requests))
	for i, r := range requests {
		words[i], _, _ = strings.Cut(r, " ")
	}
	return strings.Join(words, " ")
}

var _ = Describe("a field that has another name in the version in which its owner wrote it", func() {
	DescribeTable("is taken where all that would change is under Force, and reported otherwise",
		func(ctx SpecContext, rules ssa.Rules, taken bool) {
			a, name := newBuiltin(), newName()
			Expect(admin.Apply(ctx, scaler(name), client.FieldOwner(they))).To(Succeed())
			before := fetchScaler(ctx, name)
			if !taken {
				for range 10 {
					result := ruled(ctx, a, rules, scaler2(name, 90), fetchScaler(ctx, name))
					Expect(result.Outcome).To(Equal(ssa.Conflicted), "%s", result)
					Expect(result.Conflicts).To(HaveExactElements(And(
						HaveField("Owner.Manager", they), HaveField("Path", ContainSubstring(behavior)))))
				}
				Expect(wire.requests()).To(HaveLen(1+ssa.DefaultContentionPace.Free), "at that pace")
				Expect(fetchScaler(ctx, name).ResourceVersion).To(Equal(before.ResourceVersion))
				return
			}
			Expect(ruled(ctx, a, rules, scaler2(name, 90), before).Outcome).To(Equal(ssa.Applied))
			Expect(wire.requests()).To(HaveLen(2), "without force, and with")
			live := fetchScaler(ctx, name)
			Expect(window(live)).To(HaveValue(BeEquivalentTo(90)))
			Expect(live.Spec.MinReplicas).To(HaveValue(BeEquivalentTo(2)), "which is theirs")
			Expect(ruled(ctx, a, rules, scaler2(name, 90), live).Outcome).To(Equal(ssa.Unchanged))
			Expect(wire.requests()).To(BeEmpty())
		},
		Entry("all but a field that is not in question", by(ssa.Force, ssa.PathRule{Path: ".spec.minReplicas", Rule: ssa.Yield}), true),
		Entry("all but a field that stays", by(ssa.Force, ssa.PathRule{Path: ".spec.maxReplicas", Rule: ssa.Report}), true),
		Entry("not that field", by(ssa.Force, ssa.PathRule{Path: ".spec.behavior", Rule: ssa.Yield}), false),
		Entry("only another field", by(ssa.Yield, ssa.PathRule{Path: ".spec.minReplicas", Rule: ssa.Force}), false),
		Entry("nothing", by(ssa.Yield), false),
	)
})
