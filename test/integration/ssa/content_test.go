package ssa_test

import (
	"strings"

	"github.com/hduolab/quell/controller/ssa"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gcustom"
	"github.com/onsi/gomega/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// terminal matches an InvalidContentError whose text has all parts.
func terminal(parts ...string) types.GomegaMatcher {
	return gcustom.MakeMatcher(func(err error) (bool, error) {
		for _, p := range parts {
			if !strings.Contains(err.Error(), p) {
				return false, nil
			}
		}
		return ssa.IsTerminal(err), nil
	}).WithTemplate("Expected\n{{.FormattedActual}}\nto be terminal and to have\n{{format .Data}}", parts)
}

var _ = Describe("invalid content", func() {
	ready := condition("Ready", "True", "Works", "")
	DescribeTable("of a status is refused before anything is sent",
		func(ctx SpecContext, parts content, says ...string) {
			name := newThing(ctx)
			desired := object("Thing", name, parts)
			if metadata, ok := parts["metadata"].(content); ok {
				desired["metadata"] = with(with(metadata, "name", name), "namespace", namespace)
			}
			_, err := newWriter(newClock()).Write(ctx, ssa.Intent{Desired: desired, Live: fetchThing(ctx, name)})
			Expect(err).To(BeAssignableToTypeOf(&ssa.InvalidContentError{}))
			Expect(err).To(terminal(says...))
			Expect(wire.requests()).To(BeEmpty())
		},
		Entry("duplicate map keys", content{"status": content{"conditions": []any{ready, ready}}}, ".status.conditions", `"Ready"`),
		Entry("duplicate composite keys, one by default", content{"status": content{"ports": []any{content{"port": 80}, content{"port": 80, "protocol": "TCP"}}}}, ".status.ports", "80"),
		Entry("duplicate set items", content{"status": content{"tags": []any{"a", "a"}}}, ".status.tags", `"a"`),
		Entry("a missing key", content{"status": content{"conditions": []any{content{"status": "True"}}}}, ".status.conditions", "type"),
		Entry("an unknown field", content{"status": content{"zzz": 1}}, ".status.zzz", "not declared"),
		Entry("an unknown nested field", content{"status": content{"nested": content{"zzz": 1}}}, ".status.nested.zzz"),
		Entry("another type of value", content{"status": content{"i": "text"}}, ".status.i"),
		Entry("a condition that is no object", content{"status": content{"conditions": []any{"Ready"}}}, ".status.conditions"),
		Entry("a condition with a list for a type", content{"status": content{"conditions": []any{content{"type": []any{}, "status": content{}}}}}, ".status.conditions"),
		Entry("conditions that are no list", content{"status": content{"conditions": "none"}}, ".status.conditions"),
		Entry("labels", content{"status": content{"s": "a"}, "metadata": content{"labels": content{"a": "b"}}}, "metadata.labels", "ignored"),
		Entry("finalizers", content{"status": content{"s": "a"}, "metadata": content{"finalizers": []any{"a/b"}}}, "metadata.finalizers"),
		Entry("owner references", content{"status": content{"s": "a"}, "metadata": content{"ownerReferences": []any{}}}, "metadata.ownerReferences"),
		Entry("spec", content{"status": content{"s": "a"}, "spec": content{"size": 1}}, "spec is ignored"),
		Entry("no status", content{}, "status is missing"),
		Entry("resourceVersion", content{"status": content{"s": "a"}, "metadata": content{"resourceVersion": "1"}}, "metadata.resourceVersion"),
		Entry("managedFields", content{"status": content{"s": "a"}, "metadata": content{"managedFields": []any{}}}, "metadata.managedFields"),
		Entry("uid", content{"status": content{"s": "a"}, "metadata": content{"uid": "1"}}, "metadata.uid"),
	)

	It("of an object itself is refused when it has a status", func(ctx SpecContext) {
		name := newThing(ctx)
		_, err := newApplier(newClock()).Apply(ctx, ssa.Intent{Desired: status(name, content{"s": "a"}), Live: fetchThing(ctx, name)})
		Expect(err).To(terminal("status is ignored"))
		Expect(wire.requests()).To(BeEmpty())
	})

	It("that is nothing at all is refused", func(ctx SpecContext) {
		_, err := newApplier(newClock()).Apply(ctx, ssa.Intent{})
		Expect(err).To(terminal("must have kind"))
	})

	It("that is an object which was read is refused", func(ctx SpecContext) {
		u := fetchThing(ctx, newThing(ctx))
		_, err := newApplier(newClock()).Apply(ctx, ssa.Intent{Desired: client.ApplyConfigurationFromUnstructured(u), Live: u})
		Expect(err).To(terminal("must not be in an apply configuration"))
	})

	It("by the word of the API server is terminal: a value that validation refuses", func(ctx SpecContext) {
		name := newThing(ctx)
		wrong := content{"conditions": []any{condition("Ready", "Perhaps", "Works", "")}}
		_, err := newWriter(newClock()).Write(ctx, ssa.Intent{Desired: status(name, wrong), Live: fetchThing(ctx, name)})
		Expect(err).To(terminal("Perhaps", name, me))
	})

	DescribeTable("is terminal in the API server's own words, too",
		func(ctx SpecContext, s content) {
			name := newThing(ctx)
			err := admin.Status().Apply(ctx, status(name, s).copied(), client.FieldOwner(me), client.ForceOwnership)
			Expect(err).To(HaveOccurred())
			Expect(ssa.IsTerminal(err)).To(BeTrue(), "%v", err)
		},
		Entry("duplicate map keys", content{"conditions": []any{ready, ready}}),
		Entry("duplicate set items", content{"tags": []any{"a", "a"}}),
		Entry("a missing key", content{"conditions": []any{content{"status": "True"}}}),
		Entry("an unknown field", content{"zzz": 1}),
		Entry("null where it is not allowed", content{"s": nil}),
	)
})
