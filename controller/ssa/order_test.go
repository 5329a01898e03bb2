package ssa

import (
	"math/rand/v2"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

func arranged(t *testing.T, value, live *unstructured.Unstructured) map[string]any {
	t.Helper()
	tv, err := builtin.ObjectToTyped(value)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var l any
	if live != nil {
		l = live.Object
	}
	return arrange(tv.Schema(), tv.TypeRef(), value.Object, l).(map[string]any)
}

func TestArrange(t *testing.T) {
	tcp := func(port int64) object { return object{"containerPort": port, "protocol": "TCP"} }
	bare := func(port int64) object { return object{"containerPort": port} }
	udp := func(port int64) object { return object{"containerPort": port, "protocol": "UDP"} }
	web := func(part string, items ...any) *unstructured.Unstructured {
		return pods(object{"containers": []any{object{"name": "web", part: items}}})
	}
	tolerations := func(keys ...string) *unstructured.Unstructured {
		var list []any
		for _, k := range keys {
			list = append(list, object{"key": k})
		}
		return pods(object{"tolerations": list})
	}
	for _, test := range []struct {
		name              string
		value, live, want *unstructured.Unstructured
	}{
		{"by key without a live object", web("env", object{"name": "b"}, object{"name": "a"}), nil, web("env", object{"name": "a"}, object{"name": "b"})},
		{"in live order", web("env", object{"name": "a"}, object{"name": "b"}), web("env", object{"name": "b"}, object{"name": "a"}), web("env", object{"name": "b"}, object{"name": "a"})},
		{
			"in live order, then by key, whatever live has besides",
			web("env", object{"name": "z"}, object{"name": "a"}, object{"name": "b"}),
			web("env", object{"name": "theirs"}, object{"name": "b"}),
			web("env", object{"name": "b"}, object{"name": "a"}, object{"name": "z"}),
		},
		{
			"by all keys, where a missing one is its default", web("ports", udp(80), bare(80), bare(1)),
			web("ports", tcp(80), udp(80), tcp(1)), web("ports", bare(80), udp(80), bare(1)),
		},
		{"with the items as they are", web("env", object{"name": "a", "value": "new"}), web("env", object{"name": "a", "value": "old"}), web("env", object{"name": "a", "value": "new"})},
		{"not in an atomic list", tolerations("b", "a"), tolerations("a", "b"), tolerations("b", "a")},
		{"although live has another shape", web("env", object{"name": "b"}, object{"name": "a"}), pods(object{"containers": "none"}), web("env", object{"name": "a"}, object{"name": "b"})},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			before := test.value.DeepCopy()
			g.Expect(arranged(t, test.value, test.live)).To(Equal(test.want.Object))
			g.Expect(test.value).To(Equal(before), "the value is not changed")
		})
	}
}

func TestArrangeKeepsItemsThatPrintAlike(t *testing.T) {
	u := deployment(object{})
	u.SetFinalizers([]string{"b/1", "a/1"})
	NewWithT(t).Expect(arranged(t, u, nil)["metadata"]).To(HaveKeyWithValue("finalizers", []any{"a/1", "b/1"}))
	NewWithT(t).Expect(itemKey(nil, &schema.List{}, "1")).NotTo(Equal(itemKey(nil, &schema.List{}, int64(1))))
}

func TestMoved(t *testing.T) {
	list := func(names ...any) object { return object{"spec": object{"list": names, "n": int64(1)}} }
	NewWithT(t).Expect(moved("", list("a", "b"), list("b", "a"))).To(Equal([]Reason{{Change: Moved, Path: ".spec.list"}}))
	NewWithT(t).Expect(moved("", list("a", "b"), list("a", "b"))).To(BeEmpty())
}

func TestDigestOfAStatusIsIndependentOfOrderAndTransitionTimes(t *testing.T) {
	g := NewWithT(t)
	kinds := []string{"A", "B", "C", "D"}
	shuffled := func(time string) *unstructured.Unstructured {
		var list []any
		for _, i := range rand.Perm(len(kinds)) {
			list = append(list, object{"type": kinds[i], "status": "True", "lastTransitionTime": time})
		}
		return reported(object{"conditions": list})
	}
	want := contentOf(t, shuffled("2026-01-01T00:00:00Z"), "status").digest
	for range 1000 {
		g.Expect(contentOf(t, shuffled("2026-02-02T00:00:00Z"), "status").digest).To(Equal(want))
	}
	g.Expect(contentOf(t, reported(object{"replicas": int64(1)}), "status").digest).NotTo(Equal(want))
}

func TestDigestOfAnObjectItselfDependsOnOrder(t *testing.T) {
	env := func(names ...string) *unstructured.Unstructured {
		var list []any
		for _, n := range names {
			list = append(list, object{"name": n})
		}
		return pods(object{"containers": []any{object{"name": "web", "env": list}}})
	}
	NewWithT(t).Expect(contentOf(t, env("a", "b"), "").digest).NotTo(Equal(contentOf(t, env("b", "a"), "").digest))
}
