package ssa

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestCarryTransitionTimes(t *testing.T) {
	now := time.Date(2026, 3, 1, 13, 0, 0, 987654321, time.FixedZone("", 3600))
	const then, stamp = "2020-01-01T00:00:00Z", "2026-03-01T12:00:00Z"
	condition := func(kind, status any, at any) object {
		return object{"type": kind, "status": status, transitionTime: at}
	}
	for _, test := range []struct {
		name        string
		given, live any
		want        any
	}{
		{"now without a live object", []any{condition("A", "True", nil)}, nil, []any{condition("A", "True", stamp)}},
		{"now when the status changed", []any{condition("A", "True", nil)}, []any{condition("A", "False", then)}, []any{condition("A", "True", stamp)}},
		{"the live one while the status is the same", []any{condition("A", "True", nil)}, []any{condition("B", "True", stamp), condition("A", "True", then)}, []any{condition("A", "True", then)}},
		{"the live one where an empty status is none", []any{object{"type": "A"}}, []any{condition("A", "", then)}, []any{object{"type": "A", transitionTime: then}}},
		{"the live one in place of the caller's", []any{condition("A", "True", "1999-01-01T00:00:00Z")}, []any{condition("A", "True", then)}, []any{condition("A", "True", then)}},
		{"now in place of the caller's", []any{condition("A", "True", "1999-01-01T00:00:00Z")}, nil, []any{condition("A", "True", stamp)}},
		{"now when the live one has none", []any{condition("A", "True", nil)}, []any{condition("A", "True", nil)}, []any{condition("A", "True", stamp)}},
		{"nothing for what is no condition", []any{"A", nil}, nil, []any{"A", nil}},
		{"nothing for what is no list", "A", nil, "A"},
		{"no panic for a type that is no text", []any{condition([]any{}, object{}, nil)}, []any{condition([]any{}, object{}, then)}, []any{condition([]any{}, object{}, then)}},
		{"no panic for live conditions of another shape", []any{condition("A", "True", nil)}, []any{"A", object{}}, []any{condition("A", "True", stamp)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			u := reported(object{"conditions": test.given})
			var live client.Object
			if test.live != nil {
				live = reported(object{"conditions": test.live})
			}
			g.Expect(carryTransitionTimes(u, live, now)).To(Succeed())
			got, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "conditions")
			g.Expect(got).To(Equal(test.want))
		})
	}
}

func TestWithoutTransitionTimesLeavesTheObjectAlone(t *testing.T) {
	g := NewWithT(t)
	u := reported(object{"conditions": []any{object{"type": "A", transitionTime: "x"}, "odd"}, "replicas": int64(1)})
	before := u.DeepCopy()
	stripped := withoutTransitionTimes(u.Object)
	g.Expect(stripped).To(HaveKeyWithValue("status", object{"conditions": []any{object{"type": "A"}, "odd"}, "replicas": int64(1)}))
	g.Expect(u).To(Equal(before))
	g.Expect(withoutTransitionTimes(nil)).To(BeNil())
}
