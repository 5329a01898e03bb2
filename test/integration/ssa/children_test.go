package ssa_test

import (
	"slices"
	"strconv"
	"time"

	"github.com/hduolab/quell/controller/ssa"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/applyconfigurations"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// newBuiltin is an applier of built-in kinds.
func newBuiltin() *ssa.Applier {
	GinkgoHelper()
	return newApplier(newClock(), func(o *ssa.Options) { o.Types = applyconfigurations.NewTypeConverter(scheme) })
}

func fetchDeployment(ctx SpecContext, name string) *appsv1.Deployment {
	GinkgoHelper()
	d := &appsv1.Deployment{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, d)).To(Succeed())
	return d
}

func deployment(name string, container *corev1ac.ContainerApplyConfiguration) *appsv1ac.DeploymentApplyConfiguration {
	labels := map[string]string{"app": name}
	return appsv1ac.Deployment(name, namespace).WithLabels(labels).WithSpec(appsv1ac.DeploymentSpec().WithReplicas(0).
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels)).
		WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labels).WithSpec(corev1ac.PodSpec().WithContainers(container))))
}

func web() *corev1ac.ContainerApplyConfiguration {
	return corev1ac.Container().WithName("web").WithImage("nginx:1").
		WithEnv(corev1ac.EnvVar().WithName("B").WithValue(""), corev1ac.EnvVar().WithName("A").WithValue("1")).
		WithPorts(corev1ac.ContainerPort().WithContainerPort(80)).
		WithResources(corev1ac.ResourceRequirements().WithRequests(corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1000m"), corev1.ResourceMemory: resource.MustParse("1024Mi"),
		}))
}

var _ = Describe("a child", func() {
	It("costs one request to create, then none, also after a restart and after its controller wrote the status", func(ctx SpecContext) {
		name, a := newName(), newBuiltin()
		created := apply(ctx, a, deployment(name, web()), nil)
		Expect(created.Outcome).To(Equal(ssa.Created))
		d := fetchDeployment(ctx, name)
		Expect(apply(ctx, a, deployment(name, web()), d).Outcome).To(Equal(ssa.Unchanged))
		d.Status.ObservedGeneration, d.Status.Replicas = 1, 1
		Expect(admin.Status().Update(ctx, d, client.FieldOwner("deployment-controller"))).To(Succeed())
		Expect(apply(ctx, a, deployment(name, web()), d).Outcome).To(Equal(ssa.Unchanged))
		Expect(apply(ctx, newBuiltin(), deployment(name, web()), d).Outcome).To(Equal(ssa.Unchanged), "after a restart")
		Expect(wire.requests()).To(HaveLen(1))
		after := fetchDeployment(ctx, name)
		Expect(after.ResourceVersion).To(Equal(d.ResourceVersion))
		Expect(after.Generation).To(BeEquivalentTo(1))
	})

	It("is repaired after kubectl scale and after kubectl set image, by one request each", func(ctx SpecContext) {
		name, a := newName(), newBuiltin()
		apply(ctx, a, deployment(name, web()), nil)
		for _, strike := range []func(d *appsv1.Deployment){
			func(d *appsv1.Deployment) { *d.Spec.Replicas = 5 },
			func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "evil" },
			func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Env = nil },
			func(d *appsv1.Deployment) { d.Labels = nil },
		} {
			d := fetchDeployment(ctx, name)
			strike(d)
			Expect(admin.Update(ctx, d, client.FieldOwner("kubectl"))).To(Succeed())
			wire.requests()
			Expect(apply(ctx, newBuiltin(), deployment(name, web()), d).Outcome).To(Equal(ssa.Applied))
			Expect(wire.requests()).To(HaveLen(1))
			d = fetchDeployment(ctx, name)
			Expect(apply(ctx, newBuiltin(), deployment(name, web()), d).Outcome).To(Equal(ssa.Unchanged))
		}
		d := fetchDeployment(ctx, name)
		Expect(*d.Spec.Replicas).To(BeZero())
		Expect(d.Spec.Template.Spec.Containers[0].Image).To(Equal("nginx:1"))
		Expect(d.Spec.Template.Spec.Containers[0].Env).To(Equal([]corev1.EnvVar{{Name: "B"}, {Name: "A", Value: "1"}}), "in our order")
	})

	It("keeps what others added", func(ctx SpecContext) {
		name, a := newName(), newBuiltin()
		apply(ctx, a, deployment(name, web()), nil)
		d := fetchDeployment(ctx, name)
		d.Annotations = map[string]string{"theirs": "1"}
		d.Spec.Template.Spec.Containers = append([]corev1.Container{{Name: "sidecar", Image: "proxy"}}, d.Spec.Template.Spec.Containers...)
		Expect(admin.Update(ctx, d, client.FieldOwner("injector"))).To(Succeed())
		Expect(apply(ctx, a, deployment(name, web()), d).Outcome).To(Equal(ssa.Unchanged))
		changed := web().WithImage("nginx:2")
		Expect(apply(ctx, a, deployment(name, changed), d).Paths()).To(Equal([]string{`.spec.template.spec.containers[name="web"].image`}))
		after := fetchDeployment(ctx, name)
		Expect(after.Annotations).To(HaveKey("theirs"))
		Expect(after.Spec.Template.Spec.Containers).To(HaveExactElements(HaveField("Name", "sidecar"), HaveField("Image", "nginx:2")))
	})

	It("has its lists in the caller's order, which is one more reason to write", func(ctx SpecContext) {
		name, a := newName(), newBuiltin()
		ordered := func(names ...string) *appsv1ac.DeploymentApplyConfiguration {
			c := corev1ac.Container().WithName("web").WithImage("nginx")
			for _, n := range names {
				c.WithEnv(corev1ac.EnvVar().WithName(n).WithValue(n))
			}
			return deployment(name, c)
		}
		env := func() []string {
			var names []string
			for _, e := range fetchDeployment(ctx, name).Spec.Template.Spec.Containers[0].Env {
				names = append(names, e.Name)
			}
			return names
		}
		apply(ctx, a, ordered("A", "C"), nil)
		d := fetchDeployment(ctx, name)
		env0 := &d.Spec.Template.Spec.Containers[0].Env
		*env0 = []corev1.EnvVar{(*env0)[0], {Name: "THEIRS", Value: "1"}, (*env0)[1]}
		Expect(admin.Update(ctx, d, client.FieldOwner("injector"))).To(Succeed())
		Expect(apply(ctx, a, ordered("A", "C"), d).Outcome).To(Equal(ssa.Unchanged), "foreign items do not matter")
		for _, order := range [][]string{{"C", "A"}, {"B", "C", "A"}, {"A", "B", "C"}} {
			result := apply(ctx, a, ordered(order...), fetchDeployment(ctx, name))
			Expect(result.Outcome).To(Equal(ssa.Applied), "%v", order)
			Expect(env()).To(ContainElement("THEIRS"))
			Expect(slices.DeleteFunc(env(), func(n string) bool { return n == "THEIRS" })).To(Equal(order))
			Expect(apply(ctx, newBuiltin(), ordered(order...), fetchDeployment(ctx, name)).Outcome).To(Equal(ssa.Unchanged))
		}
		result := apply(ctx, a, ordered("C", "A", "B"), fetchDeployment(ctx, name))
		Expect(result.String()).To(Equal("Applied: .spec.template.spec.containers in another order"))
	})

	It("whose list another writer filled with duplicate keys can still be compared and applied", func(ctx SpecContext) {
		name, a := newName(), newBuiltin()
		plain := func(image string) *corev1ac.ContainerApplyConfiguration {
			return corev1ac.Container().WithName("web").WithImage(image).WithEnv(corev1ac.EnvVar().WithName("MINE").WithValue("1"))
		}
		apply(ctx, a, deployment(name, plain("nginx:1")), nil)
		d := fetchDeployment(ctx, name)
		d.Spec.Template.Spec.Containers[0].Env = append(d.Spec.Template.Spec.Containers[0].Env, corev1.EnvVar{Name: "X", Value: "1"}, corev1.EnvVar{Name: "X", Value: "2"})
		Expect(admin.Update(ctx, d, client.FieldOwner("kubectl"))).To(Succeed())
		Expect(apply(ctx, a, deployment(name, plain("nginx:1")), d).Outcome).To(Equal(ssa.Unchanged))
		Expect(apply(ctx, a, deployment(name, plain("nginx:2")), d).Outcome).To(Equal(ssa.Applied))
	})

	DescribeTable("of which something comes back in another form costs one request, then none",
		func(ctx SpecContext, spec content, outcome ssa.Outcome) {
			name := newName()
			container := content{"name": "web", "image": "nginx"}
			for k, v := range spec {
				container[k] = v
			}
			desired := config{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": content{"name": name, "namespace": namespace},
				"spec": content{"selector": content{"matchLabels": content{"app": name}}, "template": content{
					"metadata": content{"labels": content{"app": name}}, "spec": content{"containers": []any{container}, "volumes": []any{}},
				}}}
			a, start := newBuiltin(), time.Now()
			Expect(apply(ctx, a, desired, nil).Outcome).To(Equal(outcome))
			d := fetchDeployment(ctx, name)
			for range 3 {
				Expect(apply(ctx, a, desired, d).Sent).To(BeFalse())
			}
			Expect(wire.requests()).To(HaveLen(1))
			nextSecond(start)
			apply(ctx, newBuiltin(), desired, d)
			Expect(wire.requests()).To(HaveLen(map[ssa.Outcome]int{ssa.Created: 0, ssa.DoesNotStick: 1}[outcome]), "after a restart")
			Expect(fetchDeployment(ctx, name).ResourceVersion).To(Equal(d.ResourceVersion))
		},
		Entry("an empty atomic list", content{"command": []any{}}, ssa.Created),
		Entry("an empty map list", content{"env": []any{}}, ssa.Created),
		Entry("an empty struct", content{"resources": content{}}, ssa.Created),
		Entry("an empty map", content{"resources": content{"requests": content{}}}, ssa.Created),
		Entry("null", content{"workingDir": nil}, ssa.Created),
		Entry("an empty string", content{"workingDir": ""}, ssa.Created),
		Entry("false", content{"stdin": false}, ssa.Created),
		Entry("a quantity in another spelling", content{"resources": content{"requests": content{"cpu": "1000m"}}}, ssa.DoesNotStick),
	)

	DescribeTable("of which a part within an atomic value is not wanted any more loses it",
		func(ctx SpecContext, restart bool) {
			name, a := newName(), newBuiltin()
			tolerating := func(t *corev1ac.TolerationApplyConfiguration) *appsv1ac.DeploymentApplyConfiguration {
				d := deployment(name, web())
				d.Spec.Template.Spec.WithTolerations(t.WithKey("a").WithOperator(corev1.TolerationOpExists))
				return d
			}
			apply(ctx, a, tolerating(corev1ac.Toleration().WithEffect(corev1.TaintEffectNoSchedule)), nil)
			if restart {
				a = newBuiltin()
			}
			result := apply(ctx, a, tolerating(corev1ac.Toleration()), fetchDeployment(ctx, name))
			Expect(result.String()).To(Equal("Applied: .spec.template.spec.tolerations changed"))
			d := fetchDeployment(ctx, name)
			Expect(d.Spec.Template.Spec.Tolerations).To(Equal([]corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists}}))
			for _, a := range []*ssa.Applier{a, newBuiltin()} {
				Expect(apply(ctx, a, tolerating(corev1ac.Toleration()), d).Outcome).To(Equal(ssa.Unchanged))
			}
			Expect(wire.requests()).To(HaveLen(2))
		},
		Entry("in the same process", false),
		Entry("after a restart", true),
	)

	It("with a default that the API server adds within an atomic value costs one request, then none, also after a restart", func(ctx SpecContext) {
		name, a := newName(), newBuiltin()
		named := web().WithEnv(corev1ac.EnvVar().WithName("POD").WithValueFrom(corev1ac.EnvVarSource().
			WithFieldRef(corev1ac.ObjectFieldSelector().WithFieldPath("metadata.name"))))
		apply(ctx, a, deployment(name, named), nil)
		d := fetchDeployment(ctx, name)
		Expect(d.Spec.Template.Spec.Containers[0].Env).To(ContainElement(HaveField("ValueFrom.FieldRef.APIVersion", "v1")))
		for _, a := range []*ssa.Applier{a, newBuiltin()} {
			Expect(apply(ctx, a, deployment(name, named), d).Outcome).To(Equal(ssa.Unchanged))
		}
		Expect(wire.requests()).To(HaveLen(1))
	})

	It("whose validation error mentions uid is not taken for Gone", func(ctx SpecContext) {
		name, a := newName(), newBuiltin()
		apply(ctx, a, deployment(name, web()), nil)
		wrong := web().WithEnv(corev1ac.EnvVar().WithName("X").WithValueFrom(corev1ac.EnvVarSource().WithFieldRef(corev1ac.ObjectFieldSelector().WithFieldPath("metadata.annotations"))))
		_, err := a.Apply(ctx, ssa.Intent{Desired: deployment(name, wrong), Live: fetchDeployment(ctx, name)})
		Expect(err).To(terminal("metadata.annotations", "metadata.uid"))
	})

	It("whose lists come in another order on each call is the caller's own churn", func(ctx SpecContext) {
		clock, name := newClock(), newName()
		a := newApplier(clock, func(o *ssa.Options) { o.Types = applyconfigurations.NewTypeConverter(scheme) })
		apply(ctx, a, deployment(name, web()), nil)
		var held ssa.Result
		for i := range 100 {
			c := corev1ac.Container().WithName("web").WithImage("nginx").WithEnv(corev1ac.EnvVar().WithName(strconv.Itoa(i%2)).WithValue("v"), corev1ac.EnvVar().WithName(strconv.Itoa((i+1)%2)).WithValue("v"))
			if result := apply(ctx, a, deployment(name, c), fetchDeployment(ctx, name)); result.Held() {
				held = result
			}
		}
		Expect(held.String()).To(Equal("SelfChurn: .spec.template.spec.containers in another order"))
		Expect(len(wire.requests())).To(BeNumerically("<=", 2+ssa.DefaultChurnPace.Free))
	})

	It("whose lists another owner keeps in another order is held back as contended", func(ctx SpecContext) {
		clock, name := newClock(), newName()
		a := newApplier(clock, func(o *ssa.Options) { o.Types = applyconfigurations.NewTypeConverter(scheme) })
		ordered := func(names ...string) *appsv1ac.DeploymentApplyConfiguration {
			c := corev1ac.Container().WithName("web").WithImage("nginx")
			for _, n := range names {
				c.WithEnv(corev1ac.EnvVar().WithName(n).WithValue("v"))
			}
			return deployment(name, c)
		}
		apply(ctx, a, ordered("A", "B"), nil)
		wire.requests()
		var last ssa.Result
		for range 20 {
			clock.Step(100 * time.Millisecond)
			Expect(admin.Apply(ctx, ordered("B", "A"), client.FieldOwner(they), client.ForceOwnership)).To(Succeed())
			last = apply(ctx, a, ordered("A", "B"), fetchDeployment(ctx, name))
		}
		Expect(last.String()).To(Equal("Contended: .spec.template.spec.containers in another order"))
		Expect(wire.requests()).To(HaveLen(ssa.DefaultContentionPace.Free))
	})
})
