package kubectlquell_test

import (
	"cmp"
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hduolab/quell/test/localcluster"
)

type verdict struct {
	Noop     bool
	Findings []finding
	Remarks  []finding
}

type finding struct{ Path, Cause string }

// hazard is an apply after another, and what is to be said of it.
type hazard struct {
	// first is applied by "op"; again is what the question is about, "" for first.
	first, again string
	// between is what others do in between.
	between     func(ctx context.Context, ns string)
	subresource string
	findings    []finding
	remarks     []finding
}

func gadget(content string) string {
	return `{apiVersion: test.quell.dev/v1, kind: Gadget, metadata: {name: g}, ` + content + `}`
}

// prepared is what stands in the cluster for a hazard.
type prepared struct {
	ns   string
	last *unstructured.Unstructured
}

func (h hazard) subresources() []string {
	if h.subresource == "" {
		return nil
	}
	return []string{h.subresource}
}

func (h hazard) prepare(ctx context.Context) prepared {
	GinkgoHelper()
	ns := namespace(ctx)
	if h.subresource != "" {
		mustApply(ctx, "creator", ns, gadget(`spec: {text: x}`))
	}
	last := mustApply(ctx, "op", ns, h.first, h.subresources()...)
	if h.between != nil {
		h.between(ctx, ns)
	}
	return prepared{ns, last}
}

func (h hazard) verify(ctx context.Context, p prepared) {
	GinkgoHelper()
	again := cmp.Or(h.again, h.first)
	r := quell(ctx, "noop", "-f", file(again), "-n", p.ns, "--field-manager", "op", "--subresource", h.subresource, "--force-conflicts", "-o", "json")
	var report struct{ Items []verdict }
	decode(r.out, &report)
	Expect(report.Items).To(HaveLen(1), r.err)
	Expect(report.Items[0].Findings).To(ConsistOf(h.findings), r.err)
	Expect(report.Items[0].Remarks).To(ConsistOf(h.remarks), r.err)
	before := get(ctx, p.last).GetResourceVersion()
	after := mustApply(ctx, "op", p.ns, again, h.subresources()...).GetResourceVersion()
	if report.Items[0].Noop {
		Expect(after).To(Equal(before), "the real apply writes nothing")
	} else {
		Expect(after).NotTo(Equal(before), "the real apply writes")
	}
	Expect(r.code).To(Equal(map[bool]int{true: 0, false: 1}[report.Items[0].Noop]))
}

// All hazards are prepared first: managedFields tell times by the second, so that each alone would wait for the next one.
var _ = Describe("noop says what the apply then does", Ordered, ContinueOnFailure, func() {
	ready := map[string]prepared{}
	BeforeAll(func(ctx SpecContext) {
		for name, h := range hazards {
			ready[name] = h.prepare(ctx)
		}
		nextSecond(ctx, time.Now())
	})
	for _, name := range slices.Sorted(maps.Keys(hazards)) {
		It(name, func(ctx SpecContext) { hazards[name].verify(ctx, ready[name]) })
	}
})

var hazards = map[string]hazard{
	"the same again": {first: gadget(`spec: {text: x, number: 1, tags: [b, a], order: [b, a], parts: [{name: p}], filled: {a: x}}`)},
	"a Deployment with defaults and another writer": {
		first: deployment("web", "nginx:1", 1, "x"),
		between: func(ctx context.Context, ns string) {
			kubectl(ctx, "rollout", "status", "deployment/web", "-n", ns, "--timeout=60s")
		},
	},
	"another value": {
		first: gadget(`spec: {text: x}`), again: gadget(`spec: {text: v}`), findings: []finding{{".spec.text", "Changed"}},
	},
	"a field more and a field less": {
		first: gadget(`spec: {text: x}`), again: gadget(`spec: {number: 1}`),
		findings: []finding{{".spec.text", "Removed"}, {".spec.number", "Added"}},
	},
	"content that pruning drops": {
		first: gadget(`spec: {embedded: {metadata: {labels: {a: b}}}}`), findings: []finding{{".spec.embedded.metadata.labels.a", "Pruned"}},
	},
	"content that pruning drops from the status": {
		first: gadget(`status: {embedded: {metadata: {labels: {a: b}}}}`), subresource: "status",
		findings: []finding{{".status.embedded.metadata.labels.a", "Pruned"}},
	},
	"an atomic list in another order": {
		first: gadget(`spec: {order: [a, b]}`), again: gadget(`spec: {order: [b, a]}`), findings: []finding{{".spec.order", "Reordered"}},
	},
	"a set in another order": {
		first: gadget(`spec: {tags: [a, b]}`), again: gadget(`spec: {tags: [b, a]}`), findings: []finding{{".spec.tags", "Reordered"}},
	},
	"a map list in another order": {
		first: gadget(`spec: {parts: [{name: a}, {name: b}]}`), again: gadget(`spec: {parts: [{name: b}, {name: a}]}`),
		findings: []finding{{".spec.parts", "Reordered"}},
	},
	"a quantity in another form": {
		first:   `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1000m}}}]}}`,
		remarks: []finding{{`.spec.containers[name="c"].resources.requests.cpu`, "Normalised"}},
	},
	"an empty value, which the API server leaves out": {
		first:   `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i, env: [{name: E, value: ""}]}]}}`,
		remarks: []finding{{`.spec.containers[name="c"].env[name="E"].value`, "Normalised"}},
	},
	"a null that the schema allows": {first: gadget(`spec: {nothing: null, text: x}`)},
	"an empty status after one with content": {
		first: gadget(`status: {text: x}`), again: gadget(`status: {}`), subresource: "status",
		between: func(ctx context.Context, ns string) {
			mustApply(ctx, "rival", ns, gadget(`status: {number: 1}`), "status")
		},
		findings: []finding{{".status.text", "Removed"}}, remarks: []finding{{".status", "Defaulted"}},
	},
	"templates in an atomic list that are filled in": {
		first: `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: s}
spec:
  serviceName: s
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}
  volumeClaimTemplates: [{metadata: {name: d}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]
`,
		between: func(ctx context.Context, ns string) {
			kubectl(ctx, "wait", "statefulset/s", "-n", ns, "--for=jsonpath={.status.observedGeneration}=1", "--timeout=60s")
		},
		remarks: []finding{{".spec.volumeClaimTemplates", "Defaulted"}},
	},
	"an empty map that is filled in": {
		first:   gadget(`spec: {filled: {}}`),
		remarks: []finding{{".spec.filled", "Defaulted"}},
	},
	"status in an apply of the object itself": {
		first: gadget(`spec: {text: x}`), again: gadget(`spec: {text: x}, status: {text: v}`), remarks: []finding{{".status.text", "Ignored"}},
	},
	"labels in an apply of the status": {
		first: gadget(`status: {text: x}`), again: `{apiVersion: test.quell.dev/v1, kind: Gadget, metadata: {name: g, labels: {a: b}}, status: {text: x}}`,
		subresource: "status", remarks: []finding{{".metadata.labels.a", "Ignored"}},
	},
	"the texts of a Secret": {
		first:   `{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {p: x}}`,
		remarks: []finding{{".stringData.p", "Normalised"}},
	},
	"another text of a Secret": {
		first: `{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {p: x}}`, again: `{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {p: z}}`,
		findings: []finding{{".data.p", "Changed"}}, remarks: []finding{{".stringData.p", "Normalised"}},
	},
	"another API version": {
		first: gadget(`spec: {text: x}`), again: `{apiVersion: test.quell.dev/v1beta1, kind: Gadget, metadata: {name: g}, spec: {text: x}}`,
		findings: []finding{{"", "APIVersion"}},
	},
	"a value that another manager took": {
		first: gadget(`spec: {text: x, number: 1}`), findings: []finding{{".spec.text", "Changed"}},
		between: func(ctx context.Context, ns string) { mustApply(ctx, "rival", ns, gadget(`spec: {text: v}`)) },
	},
	"a value that another manager took and gave back": {
		first: gadget(`spec: {text: x, number: 1}`), findings: []finding{{".spec.text", "NewlyOwned"}},
		between: func(ctx context.Context, ns string) {
			mustApply(ctx, "rival", ns, gadget(`spec: {text: v}`))
			mustApply(ctx, "rival", ns, gadget(`spec: {text: x}`))
		},
	},
	"a field less that somebody else owns too": {
		first: gadget(`spec: {text: x, number: 1}`), again: gadget(`spec: {text: x}`), findings: []finding{{".spec.number", "Released"}},
		between: func(ctx context.Context, ns string) { mustApply(ctx, "rival", ns, gadget(`spec: {number: 1}`)) },
	},
}

var _ = Describe("noop", func() {
	It("tells of an object to come and of conflicts", func(ctx SpecContext) {
		ns := namespace(ctx)
		manifest := file(gadget(`spec: {text: x}`))
		Expect(expect(ctx, 1, "noop", "-f", manifest, "-n", ns)).To(ContainSubstring("Created"))
		mustApply(ctx, "rival", ns, gadget(`spec: {text: v}`))
		Expect(expect(ctx, 1, "noop", "-f", manifest, "-n", ns)).To(MatchRegexp(`\.spec\.text +Conflict +"x" +"v"`))
		expect(ctx, 3, "noop", "-f", file(gadget(`spec: {nosuch: y}`)), "-n", ns)
	})

	It("looks nowhere else than in the namespace of -n", func(ctx SpecContext) {
		ns := namespace(ctx)
		elsewhere := file(strings.Replace(gadget(`spec: {text: x}`), "name: g", "name: g, namespace: default", 1))
		for _, command := range []string{"noop", "conflicts"} {
			r := quell(ctx, command, "-f", elsewhere, "-n", ns)
			Expect(r.code).To(Equal(3), command)
			Expect(r.err).To(ContainSubstring(`the namespace from the provided object "default" does not match the namespace "`+ns+`"`), command)
		}
	})

	It("names a subresource that there is not", func(ctx SpecContext) {
		ns := namespace(ctx)
		mustApply(ctx, "op", ns, gadget(`spec: {text: x}`))
		for _, command := range []string{"noop", "conflicts"} {
			r := quell(ctx, command, "-f", file(gadget(`spec: {text: y}`)), "-n", ns, "--subresource", "nope")
			Expect(r.code).To(Equal(3), command)
			Expect(r.err).To(ContainSubstring(`through subresource "nope" as a dry run: `), command)
		}
	})

	It("refuses what the API server refuses: keys that repeat or are missing", func(ctx SpecContext) {
		ns := namespace(ctx)
		mustApply(ctx, "op", ns, gadget(`spec: {text: x}`))
		for content, words := range map[string]string{
			`spec: {parts: [{name: p}, {name: p}]}`: `.spec.parts: duplicate entries for key [name="p"]`,
			`spec: {tags: [a, a]}`:                  `.spec.tags: duplicate entries for key [="a"]`,
			`spec: {parts: [{value: v}]}`:           `.spec.parts: element 0: associative list with keys has an element that omits all key fields ["name"]`,
		} {
			_, err := apply(ctx, "op", ns, gadget(content), true)
			Expect(err).To(MatchError(ContainSubstring(words)))
			for _, command := range []string{"noop", "conflicts"} {
				r := quell(ctx, command, "-f", file(gadget(content)), "-n", ns, "--field-manager", "op")
				Expect(r.code).To(Equal(3), command)
				Expect(r.err).To(ContainSubstring(words), command)
			}
		}
	})

	It("takes the last of two equal JSON keys, as the API server does", func(ctx SpecContext) {
		ns := namespace(ctx)
		live := mustApply(ctx, "op", ns, gadget(`spec: {text: x}`))
		const twice = `{"apiVersion":"test.quell.dev/v1","kind":"Gadget","metadata":{"name":"g"},"spec":{"text":"other","text":"x"}}`
		nextSecond(ctx, time.Now())
		expect(ctx, 0, "noop", "-f", file(twice), "-n", ns, "--field-manager", "op")
		expect(ctx, 0, "conflicts", "-f", file(twice), "-n", ns, "--field-manager", "another")
		after := get(ctx, live)
		Expect(admin.Patch(ctx, after, client.RawPatch(types.ApplyPatchType, []byte(twice)), client.FieldOwner("op"))).To(Succeed())
		Expect(after.GetResourceVersion()).To(Equal(live.GetResourceVersion()))
	})

	It("cannot see the one write after a new default or another storage version, and there is but one", func(ctx SpecContext) {
		ns := namespace(ctx)
		kubectl(ctx, "create", "-f", file(strings.NewReplacer("gadget", "trinket", "Gadget", "Trinket").Replace(text("gadgets.yaml"))))
		DeferCleanup(func(ctx context.Context) { kubectl(ctx, "delete", "crd", "trinkets.test.quell.dev") })
		Expect(localcluster.WaitEstablished(ctx, cluster.Config(), "trinkets.test.quell.dev")).To(Succeed())
		const manifest = `{apiVersion: test.quell.dev/v1, kind: Trinket, metadata: {name: t}, spec: {text: x}}`
		Eventually(func() error { _, err := apply(ctx, "op", ns, manifest, true); return err }).Should(Succeed())
		version := func() string { return mustApply(ctx, "op", ns, manifest).GetResourceVersion() }
		for _, patch := range []string{
			`[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/number/default","value":7}]`,
			`[{"op":"replace","path":"/spec/versions/0/storage","value":false},{"op":"replace","path":"/spec/versions/1/storage","value":true}]`,
		} {
			before := version()
			kubectl(ctx, "patch", "crd", "trinkets.test.quell.dev", "--type=json", "-p", patch)
			expect(ctx, 0, "noop", "-f", file(manifest), "-n", ns, "--field-manager", "op")
			Eventually(version).ShouldNot(Equal(before), patch)
			Expect(version()).To(Equal(version()), patch)
		}
	})

	It("does not take what others write meanwhile for the work of the apply", func(ctx SpecContext) {
		ns := namespace(ctx)
		g := mustApply(ctx, "op", ns, gadget(`spec: {text: x}`))
		kubeconfig := interposed(ctx, func() { update(ctx, "bystander", g, `{"status":{"number":1}}`, "status") })
		r := execute(ctx, bin, kubeconfig, "", filepath.Join(bin, "kubectl-quell"), "noop", "-f", file(gadget(`spec: {text: x}`)), "-n", ns, "--field-manager", "op")
		Expect(r.code).To(BeZero(), r.out+r.err)
		Expect(get(ctx, g).Object["status"]).To(HaveKeyWithValue("number", BeEquivalentTo(1)))
	})

	It("tells admission's value from one's own", func(ctx SpecContext) {
		ns := namespace(ctx)
		kubectl(ctx, "label", "namespace", ns, "admission=gadgets")
		policy := asset("admission.yaml")
		kubectl(ctx, "create", "-f", policy)
		DeferCleanup(func(ctx context.Context) { kubectl(ctx, "delete", "-f", policy) })
		manifest := `{apiVersion: test.quell.dev/v1, kind: Gadget, metadata: {name: g}, spec: {text: mine, number: 1}}`
		Eventually(func() (any, error) { // until the policy is in force
			u, err := apply(ctx, "op", ns, manifest, true)
			return u.Object["spec"], err
		}).Should(HaveKeyWithValue("text", "admission's"))
		nextSecond(ctx, time.Now())
		var report struct{ Items []verdict }
		decode(expect(ctx, 0, "noop", "-f", file(manifest), "-n", ns, "--field-manager", "op", "-o", "json"), &report)
		Expect(report.Items[0].Remarks).To(ConsistOf(finding{".spec.text", "ChangedByServer"}))
	})
})

// nextSecond waits until a time falls into a later second than the given one.
func nextSecond(ctx context.Context, than time.Time) {
	GinkgoHelper()
	Eventually(func() bool { return metav1.Now().Unix() > than.Unix() }).WithContext(ctx).Should(BeTrue())
}
