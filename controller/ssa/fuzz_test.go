package ssa

import (
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// FuzzContent reads a status as a caller might have built it. Whatever is taken has a digest that depends neither on the order of
// map lists nor on being brought into order already, and every refusal is one that no retry heals.
func FuzzContent(f *testing.F) {
	for _, seed := range []string{
		`{"replicas":3,"conditions":[{"type":"Progressing","status":"True"},{"type":"Available","status":"False","lastTransitionTime":"2026-01-01T00:00:00Z"}]}`,
		`{"conditions":[{"type":"Available"},{"type":"Available"}]}`, `{"conditions":[{"status":"True"}]}`, `{"conditions":[null]}`, `{"conditions":null}`,
		`{"replicas":1e3}`, `{"replicas":"three"}`, `{"unknown":{}}`, `[]`, `null`, `{"conditions":{}}`, `{`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, status string) {
		raw := []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"status":` + status + `}`)
		u, err := decode(raw, "status")
		if err != nil {
			return
		}
		c, err := newContent(u, builtin, "status")
		if err != nil {
			if !IsTerminal(err) {
				t.Errorf("%v could be tried again", err)
			}
			return
		}
		arranged, isMap := arrange(c.typed.Schema(), c.typed.TypeRef(), u.Object, nil).(map[string]any)
		if !isMap {
			t.Fatalf("%T after it was brought into order", arranged)
		}
		for name, other := range map[string]map[string]any{"in order": arranged, "reversed": reversed(u).Object} {
			again, err := newContent(&unstructured.Unstructured{Object: other}, builtin, "status")
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if again.digest != c.digest || !reflect.DeepEqual(again.fields, c.fields) && !again.fields.Equals(c.fields) {
				t.Errorf("%s, it is another content", name)
			}
		}
	})
}

// reversed has the conditions in the opposite order.
func reversed(u *unstructured.Unstructured) *unstructured.Unstructured {
	other := u.DeepCopy()
	if conditions, found, err := unstructured.NestedSlice(other.Object, "status", "conditions"); found && err == nil {
		slices.Reverse(conditions)
		_ = unstructured.SetNestedSlice(other.Object, conditions, "status", "conditions")
	}
	return other
}
