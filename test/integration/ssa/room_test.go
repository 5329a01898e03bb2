package ssa_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/hduolab/quell/controller/ssa"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/applyconfigurations"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var boxKind = schema.GroupVersionKind{Group: "test.quell.dev", Version: "v1", Kind: "Box"}

func box(name string, spec content) config {
	return config{"apiVersion": "test.quell.dev/v1", "kind": "Box", "metadata": content{"name": name, "namespace": namespace}, "spec": spec}
}

func fetchBox(ctx context.Context, name string) *unstructured.Unstructured {
	GinkgoHelper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(boxKind)
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, u)).To(Succeed())
	return u
}

// olderBox is Box as a release knew it that had no volumes[].next.
type olderBox struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec olderBoxSpec `json:"spec"`
}

type olderBoxSpec struct {
	Volumes []olderVolume `json:"volumes,omitempty"`
}

type olderVolume struct {
	Name string `json:"name"`
	Old  string `json:"old,omitempty"`
}

func (b *olderBox) DeepCopyObject() runtime.Object {
	c := *b
	c.ObjectMeta = *b.ObjectMeta.DeepCopy()
	c.Spec.Volumes = append([]olderVolume(nil), b.Spec.Volumes...)
	return &c
}

var _ = Describe("content that is not valid beside what others left", func() {
	web := func() *corev1ac.ServicePortApplyConfiguration {
		return corev1ac.ServicePort().WithName("http").WithPort(80).WithProtocol(corev1.ProtocolTCP)
	}
	edited := func(ctx SpecContext, name string) *corev1.Service {
		return update(ctx, "kubectl-edit", fetchService(ctx, name), func(s *corev1.Service) {
			s.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 8080}, {Name: "metrics", Port: 9090}}
		})
	}

	DescribeTable("takes a Service port over whose number was edited, leaves the other foreign port, and is quiet then",
		func(ctx SpecContext, again func(*ssa.Applier) *ssa.Applier) {
			a, name := newBuiltin(), newName()
			apply(ctx, a, servicePorts(name, web()), nil)
			live := edited(ctx, name)
			wire.requests()
			a = again(a)
			result := apply(ctx, a, servicePorts(name, web()), live)
			Expect(result.Outcome).To(Equal(ssa.Applied))
			Expect(words(result)).To(ContainElement(`.spec.ports[port=8080,protocol="TCP"] in the way, cleared for "kubectl-edit" (Update)`))
			Expect(result.Rivals()).To(HaveExactElements(HaveField("Manager", "kubectl-edit")))
			Expect(verbs(wire.requests())).To(Equal("PATCH GET PATCH PATCH PATCH"), "refused, read, rehearsed, taken over, applied")
			after := fetchService(ctx, name)
			Expect(numbers(after)).To(Equal([]int32{80, 9090}))
			for _, a := range []*ssa.Applier{a, newBuiltin()} {
				Expect(apply(ctx, a, servicePorts(name, web()), after).Outcome).To(Equal(ssa.Unchanged))
			}
			Expect(wire.requests()).To(BeEmpty())
		},
		Entry("in one process", func(a *ssa.Applier) *ssa.Applier { return a }),
		Entry("after a restart", func(*ssa.Applier) *ssa.Applier { return newBuiltin() }),
	)

	It("knows what others keep in a map that is given up, and takes that too", func(ctx SpecContext) {
		a, name := newBuiltin(), newName()
		volume := corev1ac.Volume().WithName("data")
		desired := func(web *corev1ac.ContainerApplyConfiguration) *appsv1ac.DeploymentApplyConfiguration {
			d := deployment(name, web)
			d.Spec.Template.Spec.WithVolumes(volume)
			return d
		}
		volume.WithEmptyDir(corev1ac.EmptyDirVolumeSource())
		apply(ctx, a, desired(corev1ac.Container().WithName("web").WithImage("nginx")), nil)
		live := update(ctx, "kubectl-edit", fetchDeployment(ctx, name), func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Volumes[0].EmptyDir.SizeLimit = new(resource.MustParse("1Gi"))
			d.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 9090}}
		})
		volume.EmptyDir = nil
		volume.WithConfigMap(corev1ac.ConfigMapVolumeSource().WithName("data"))
		port := corev1ac.ContainerPort().WithName("http").WithContainerPort(8080).WithProtocol(corev1.ProtocolTCP)
		result := apply(ctx, a, desired(corev1ac.Container().WithName("web").WithImage("nginx").WithPorts(port)), live)
		Expect(result.Outcome).To(Equal(ssa.Applied))
		Expect(words(result)).To(ContainElements(ContainSubstring(`.volumes[name="data"].emptyDir in the way`), ContainSubstring(`.ports[containerPort=9090,protocol="TCP"] in the way`)))
	})

	It("takes nothing when the content is refused for what it lacks itself", func(ctx SpecContext) {
		a := newBuiltin()
		name := newDeployment(ctx, a)
		limits := corev1ac.ResourceRequirements().WithLimits(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")})
		theirs := deployment(name, corev1ac.Container().WithName("web").WithResources(limits))
		theirs.Spec.WithReplicas(3)
		Expect(admin.Apply(ctx, theirs, client.FieldOwner(they))).To(Succeed())
		before := fetchDeployment(ctx, name)
		_, err := a.Apply(ctx, ssa.Intent{Desired: deployment(name, corev1ac.Container().WithName("web")), Live: before})
		Expect(err).To(terminal("containers[0].image", "Required value"))
		Expect(fetchDeployment(ctx, name)).To(Equal(before))
		Expect(apply(ctx, a, image(name, "nginx:2", 3), before).Outcome).To(Equal(ssa.Applied))
		Expect(fetchDeployment(ctx, name).Spec.Template.Spec.Containers[0].Resources.Limits).To(HaveLen(1), "it is theirs still")
	})

	DescribeTable("takes what is in the way in a Pod template, and no more",
		func(ctx SpecContext, mine func(*corev1ac.ContainerApplyConfiguration), edit func(*corev1.Container), taken string, check func(corev1.Container)) {
			a, name := newBuiltin(), newName()
			container := corev1ac.Container().WithName("web").WithImage("nginx")
			mine(container)
			apply(ctx, a, deployment(name, container), nil)
			update(ctx, "injector", fetchDeployment(ctx, name), func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Containers = append([]corev1.Container{{Name: "side", Image: "proxy", Ports: []corev1.ContainerPort{{Name: "side", ContainerPort: 15000}}}}, d.Spec.Template.Spec.Containers...)
			})
			live := update(ctx, "kubectl-edit", fetchDeployment(ctx, name), func(d *appsv1.Deployment) { edit(&d.Spec.Template.Spec.Containers[1]) })
			result := apply(ctx, a, deployment(name, container), live)
			Expect(result.Outcome).To(Equal(ssa.Applied))
			Expect(words(result)).To(ContainElement(`.spec.template.spec.containers[name="web"]` + taken + ` in the way, cleared for "kubectl-edit" (Update)`))
			after := fetchDeployment(ctx, name)
			Expect(after.Spec.Template.Spec.Containers).To(HaveLen(2))
			Expect(after.Spec.Template.Spec.Containers[0].Ports).To(HaveLen(1), "the sidecar's port is nobody's business")
			check(after.Spec.Template.Spec.Containers[1])
			wire.requests()
			Expect(apply(ctx, a, deployment(name, container), after).Outcome).To(Equal(ssa.Unchanged))
			Expect(wire.requests()).To(BeEmpty())
		},
		Entry("a container port under another number", func(c *corev1ac.ContainerApplyConfiguration) {
			c.WithPorts(corev1ac.ContainerPort().WithName("http").WithContainerPort(8080).WithProtocol(corev1.ProtocolTCP))
		}, func(c *corev1.Container) { c.Ports[0].ContainerPort = 9090 }, `.ports[containerPort=9090,protocol="TCP"]`, func(c corev1.Container) {
			Expect(c.Ports).To(HaveExactElements(HaveField("ContainerPort", int32(8080))))
		}),
		Entry("another kind of probe, whose timing stays", func(c *corev1ac.ContainerApplyConfiguration) {
			c.WithReadinessProbe(corev1ac.Probe().WithTCPSocket(corev1ac.TCPSocketAction().WithPort(intstr.FromInt32(8080))))
		}, func(c *corev1.Container) {
			c.ReadinessProbe.TCPSocket, c.ReadinessProbe.HTTPGet = nil, &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(8080)}
			c.ReadinessProbe.InitialDelaySeconds = 7
		}, ".readinessProbe.httpGet", func(c corev1.Container) {
			Expect(c.ReadinessProbe.TCPSocket).NotTo(BeNil())
			Expect(c.ReadinessProbe.HTTPGet).To(BeNil())
			Expect(c.ReadinessProbe.InitialDelaySeconds).To(BeEquivalentTo(7))
		}),
		Entry("another kind of probe, the other way round", func(c *corev1ac.ContainerApplyConfiguration) {
			c.WithReadinessProbe(corev1ac.Probe().WithHTTPGet(corev1ac.HTTPGetAction().WithPort(intstr.FromInt32(8080)).WithPath("/")))
		}, func(c *corev1.Container) {
			c.ReadinessProbe.HTTPGet, c.ReadinessProbe.TCPSocket = nil, &corev1.TCPSocketAction{Port: intstr.FromInt32(8080)}
			c.ReadinessProbe.PeriodSeconds = 70
		}, ".readinessProbe.tcpSocket", func(c corev1.Container) {
			Expect(c.ReadinessProbe.TCPSocket).To(BeNil())
			Expect(c.ReadinessProbe.PeriodSeconds).To(BeEquivalentTo(70))
		}),
		Entry("a source in place of a value", func(c *corev1ac.ContainerApplyConfiguration) {
			c.WithEnv(corev1ac.EnvVar().WithName("A").WithValue("1"))
		}, func(c *corev1.Container) {
			c.Env[0] = corev1.EnvVar{Name: "A", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}
		}, `.env[name="A"].valueFrom`, func(c corev1.Container) {
			Expect(c.Env).To(Equal([]corev1.EnvVar{{Name: "A", Value: "1"}}))
		}),
		Entry("a value in place of a source", func(c *corev1ac.ContainerApplyConfiguration) {
			c.WithEnv(corev1ac.EnvVar().WithName("A").WithValueFrom(corev1ac.EnvVarSource().WithFieldRef(corev1ac.ObjectFieldSelector().WithFieldPath("metadata.name"))))
		}, func(c *corev1.Container) { c.Env[0] = corev1.EnvVar{Name: "A", Value: "1"} }, `.env[name="A"].value`, func(c corev1.Container) {
			Expect(c.Env).To(HaveExactElements(And(HaveField("Value", ""), HaveField("ValueFrom.FieldRef.FieldPath", "metadata.name"))))
		}),
	)

	It("takes over what an applier left too, with what the API server added to it", func(ctx SpecContext) {
		a, name := newBuiltin(), newName()
		probed := func(p *corev1ac.ProbeApplyConfiguration) *corev1ac.ContainerApplyConfiguration {
			return corev1ac.Container().WithName("web").WithImage("nginx").WithLivenessProbe(p)
		}
		mine := probed(corev1ac.Probe().WithTCPSocket(corev1ac.TCPSocketAction().WithPort(intstr.FromInt32(8080))))
		apply(ctx, a, deployment(name, corev1ac.Container().WithName("web").WithImage("nginx")), nil)
		theirs := appsv1ac.Deployment(name, namespace).WithSpec(appsv1ac.DeploymentSpec().WithTemplate(corev1ac.PodTemplateSpec().WithSpec(corev1ac.PodSpec().
			WithContainers(probed(corev1ac.Probe().WithHTTPGet(corev1ac.HTTPGetAction().WithPort(intstr.FromInt32(8080)))).WithImage("nginx")))))
		Expect(admin.Apply(ctx, theirs, client.FieldOwner(they))).To(Succeed())
		Expect(apply(ctx, a, deployment(name, mine), fetchDeployment(ctx, name)).Outcome).To(Equal(ssa.Applied))
		Expect(fetchDeployment(ctx, name).Spec.Template.Spec.Containers[0].LivenessProbe.HTTPGet).To(BeNil())
	})

	DescribeTable("is refused, and nothing is taken", func(ctx SpecContext, rules ssa.Rules, port int32) {
		a, name := newBuiltin(), newName()
		apply(ctx, a, servicePorts(name, web()), nil)
		live := edited(ctx, name)
		mine := web()
		if port != 0 {
			mine.WithPort(port)
		}
		_, err := a.Apply(ctx, ssa.Intent{Desired: servicePorts(name, mine), Live: live, Rules: rules})
		Expect(err).To(terminal("spec.ports["))
		after := fetchService(ctx, name)
		Expect(after.ResourceVersion).To(Equal(live.ResourceVersion))
		wire.requests()
		_, again := a.Apply(ctx, ssa.Intent{Desired: servicePorts(name, mine), Live: live, Rules: rules})
		Expect(again).To(HaveOccurred())
		Expect(len(wire.requests())).To(BeNumerically("<=", 2+8))
	},
		Entry("under Yield", by(ssa.Yield), int32(0)),
		Entry("under Report", by(ssa.Report), int32(0)),
		Entry("under a rule for that place", by(ssa.Force, ssa.PathRule{Path: ".spec.ports", Rule: ssa.Yield}), int32(0)),
		Entry("under a rule for something within", by(ssa.Force, ssa.PathRule{Path: `.spec.ports[port=8080,protocol="TCP"].name`, Rule: ssa.Yield}), int32(0)),
		Entry("when it is not valid alone either", by(ssa.Force), int32(70000)),
	)

	It("is tried again when the object changes meanwhile", func(ctx SpecContext) {
		a, name := newBuiltin(), newName()
		apply(ctx, a, servicePorts(name, web()), nil)
		live := edited(ctx, name)
		patches := 0
		wire.breakWith(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			if r.Header.Get("Content-Type") == "application/json-patch+json" {
				if patches++; patches <= 2 {
					update(ctx, "labeller", fetchService(ctx, name), func(s *corev1.Service) { s.Labels = map[string]string{"round": fmt.Sprint(patches)} })
				}
			}
			return next.RoundTrip(r)
		})
		Expect(apply(ctx, a, servicePorts(name, web()), live).Outcome).To(Equal(ssa.Applied))
		Expect(numbers(fetchService(ctx, name))).To(Equal([]int32{80, 9090}))
	})

	It("is held back like any fight when somebody keeps putting it there, and the rival is named", func(ctx SpecContext) {
		clock, name := newClock(), newName()
		a := newApplier(clock, func(o *ssa.Options) { o.Types = applyconfigurations.NewTypeConverter(scheme) })
		apply(ctx, a, servicePorts(name, web()), nil)
		wire.requests()
		var last ssa.Result
		for range 20 {
			clock.Step(100 * time.Millisecond)
			edited(ctx, name)
			last = apply(ctx, a, servicePorts(name, web()), fetchService(ctx, name))
		}
		Expect(last.Outcome).To(Equal(ssa.Contended))
		Expect(last.Rivals()).To(HaveExactElements(HaveField("Manager", "kubectl-edit")))
		Expect(wire.requests()).To(HaveLen(5 * ssa.DefaultContentionPace.Free))
	})

	It("stays refused where patching is all that is allowed but reading is not", func(ctx SpecContext) {
		name := newName()
		o := options(testclock.NewFakeClock(time.Now()))
		o.Types, o.Reader = applyconfigurations.NewTypeConverter(scheme), nil
		a, err := ssa.NewApplier(o)
		Expect(err).NotTo(HaveOccurred())
		apply(ctx, a, servicePorts(name, web()), nil)
		_, err = a.Apply(ctx, ssa.Intent{Desired: servicePorts(name, web()), Live: edited(ctx, name)})
		Expect(err).To(terminal("Duplicate value"))
	})

	// atFirstRead does something when what is in the way is read.
	atFirstRead := func(name string, act func()) {
		gets := 0
		wire.breakWith(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			if r.Method == http.MethodGet && strings.Contains(r.URL.Path, name) {
				if gets++; gets == 1 {
					act()
				}
			}
			return next.RoundTrip(r)
		})
	}
	httpPort := corev1ac.ContainerPort().WithName("http").WithContainerPort(8080).WithProtocol(corev1.ProtocolTCP)

	It("gives up no field that its other owner gives up in the middle", func(ctx SpecContext) {
		a, name := newBuiltin(), newName()
		desired := func(replicas int32, ports ...*corev1ac.ContainerPortApplyConfiguration) *appsv1ac.DeploymentApplyConfiguration {
			d := deployment(name, corev1ac.Container().WithName("web").WithImage("nginx").WithPorts(ports...))
			d.Spec.WithReplicas(replicas)
			return d
		}
		apply(ctx, a, desired(7), nil)
		theirs := appsv1ac.Deployment(name, namespace).WithSpec(appsv1ac.DeploymentSpec().WithReplicas(7))
		Expect(admin.Apply(ctx, theirs, client.FieldOwner(they))).To(Succeed())
		live := update(ctx, "kubectl-edit", fetchDeployment(ctx, name), func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 9090}}
		})
		atFirstRead(name, func() {
			Expect(admin.Apply(ctx, appsv1ac.Deployment(name, namespace), client.FieldOwner(they))).To(Succeed())
		})
		rules := by(ssa.Force, ssa.PathRule{Path: ".spec.replicas", Rule: ssa.Yield})
		Expect(ruled(ctx, a, rules, desired(8, httpPort), live).Yielded).To(BeEmpty())
		Expect(fetchDeployment(ctx, name).Spec.Replicas).To(HaveValue(BeEquivalentTo(8)), "it is ours alone by then")
	})

	It("forces nothing that is to be reported and was set in the middle", func(ctx SpecContext) {
		a, name := newBuiltin(), newName()
		desired := func(ports ...*corev1ac.ContainerPortApplyConfiguration) *appsv1ac.DeploymentApplyConfiguration {
			d := deployment(name, corev1ac.Container().WithName("web").WithImage("nginx").WithPorts(ports...))
			d.Spec.WithMinReadySeconds(1)
			return d
		}
		apply(ctx, a, desired(), nil)
		live := update(ctx, "kubectl-edit", fetchDeployment(ctx, name), func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Image = "edited"
			d.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 9090}}
		})
		atFirstRead(name, func() {
			update(ctx, "person", fetchDeployment(ctx, name), func(d *appsv1.Deployment) { d.Spec.MinReadySeconds = 99 })
		})
		result := ruled(ctx, a, by(ssa.Force, ssa.PathRule{Path: ".spec.minReadySeconds", Rule: ssa.Report}), desired(httpPort), live)
		Expect(result.Outcome).To(Equal(ssa.Conflicted))
		Expect(fetchDeployment(ctx, name).Spec.MinReadySeconds).To(BeEquivalentTo(99))
	})

	Describe("in a custom resource", func() {
		It("goes on to the next field where one belongs to an entry that cannot be united with ours", func(ctx SpecContext) {
			a, name := newApplier(newClock()), newName()
			apply(ctx, a, box(name, content{"c": "ours"}), nil)
			older := with(box(name, content{"a": "theirs"}), "apiVersion", any("test.quell.dev/v1beta1"))
			Expect(admin.Apply(ctx, older.copied(), client.FieldOwner("older"))).To(Succeed())
			Expect(admin.Apply(ctx, box(name, content{"b": "theirs"}).copied(), client.FieldOwner(they))).To(Succeed())
			Expect(apply(ctx, a, box(name, content{"c": "ours", "z": "ours"}), fetchBox(ctx, name)).Outcome).To(Equal(ssa.Applied))
			Expect(field(fetchBox(ctx, name), "spec")).To(Equal(content{"a": "theirs", "c": "ours", "z": "ours"}))
		})

		It("takes over a whole field of the object", func(ctx SpecContext) {
			a, name := newApplier(newClock()), newName()
			Expect(admin.Apply(ctx, with(box(name, content{"a": "theirs"}), "two", any("theirs")).copied(), client.FieldOwner(they))).To(Succeed())
			Expect(apply(ctx, a, with(box(name, content{"c": "ours"}), "one", any("ours")), fetchBox(ctx, name)).Outcome).To(Equal(ssa.Applied))
			Expect(fetchBox(ctx, name).Object).NotTo(HaveKey("two"))
		})

		It("takes what is far from the field that is named, alone", func(ctx SpecContext) {
			a, name := newApplier(newClock()), newName()
			apply(ctx, a, box(name, content{"load": content{"size": 1}}), nil)
			Expect(admin.Apply(ctx, box(name, content{"load": content{"color": "theirs"}, "free": "theirs"}).copied(), client.FieldOwner(they))).To(Succeed())
			Expect(apply(ctx, a, box(name, content{"load": content{"size": 5}}), fetchBox(ctx, name)).Outcome).To(Equal(ssa.Applied))
			Expect(field(fetchBox(ctx, name), "spec")).To(Equal(content{"load": content{"size": int64(5), "color": "theirs"}}))
		})

		It("takes nothing where there is a field of a newer release, which may be what is in the way", func(ctx SpecContext) {
			older := runtime.NewScheme()
			Expect(clientgoscheme.AddToScheme(older)).To(Succeed())
			older.AddKnownTypeWithName(boxKind, &olderBox{})
			metav1.AddToGroupVersion(older, boxKind.GroupVersion())
			k, err := client.New(cluster.Config(), client.Options{Scheme: older})
			Expect(err).NotTo(HaveOccurred())
			schemas := published(ctx)
			delete(schemas["dev.quell.test.v1.Box"].Properties["spec"].Properties["volumes"].Items.Schema.Properties, "next")
			a, name := newApplier(newClock(), func(o *ssa.Options) { o.Client, o.Reader, o.Types = k, k, typesOf(schemas) }), newName()
			apply(ctx, a, box(name, content{}), nil)
			Expect(admin.Apply(ctx, box(name, content{"volumes": []any{
				content{"name": "data", "next": "theirs"}, content{"name": "side", "old": "theirs"},
			}}).copied(), client.FieldOwner(they))).To(Succeed())
			live, before := &olderBox{}, fetchBox(ctx, name)
			Expect(k.Get(ctx, client.ObjectKeyFromObject(before), live)).To(Succeed())
			_, err = a.Apply(ctx, ssa.Intent{Desired: box(name, content{"volumes": []any{content{"name": "data", "old": "ours"}}}), Live: live})
			Expect(err).To(terminal("old and next exclude each other"))
			Expect(fetchBox(ctx, name)).To(Equal(before))
		})
	})
})
