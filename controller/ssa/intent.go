package ssa

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Intent is one desired state.
type Intent struct {
	// Desired is the full apply configuration: every field that the manager wants to own. It is not changed.
	Desired runtime.ApplyConfiguration
	// Live is the object as the cache has it, nil when it does not exist. It is not changed.
	Live client.Object
	// Inputs identifies what Desired was computed from (see Generation and Version). While it stands still, other content
	// counts as the caller's own churn; when it changes for an object itself, a fight with other writers starts over. Empty means
	// that nothing but the generation of Live is known.
	Inputs string
	// Children is the number of objects that Desired sums up; the churn budget grows with it.
	Children int
	// Rules say what happens to fields that others own with other values; the zero value takes them all.
	Rules Rules
	// Exact has a request change Live as it is, or nothing: when the object has another resourceVersion by then, or Live is known
	// to be outdated, the outcome is Stale. It is for content that was derived from Live. An object that does not exist is
	// applied as ever.
	Exact bool
	// Tentative applies nothing: where an apply would go out the outcome is Stale. It is for content that must not be written on the
	// word of a cache, while its being in place already costs nothing. Entries of former managers are taken over as ever.
	Tentative bool
}

// Generation identifies objects by what people ask of them, for Intent.Inputs.
func Generation(objects ...client.Object) string {
	return join(objects, func(o client.Object) string { return fmt.Sprint(o.GetGeneration()) })
}

// Version identifies objects by their whole content, status included, for Intent.Inputs.
func Version(objects ...client.Object) string {
	return join(objects, client.Object.GetResourceVersion)
}

func join(objects []client.Object, of func(client.Object) string) string {
	var s string
	for _, o := range objects {
		if !isNil(o) {
			s += string(o.GetUID()) + "/" + of(o) + ";"
		}
	}
	return s
}

// isNil also finds a nil pointer inside the interface, which a caller with an optional child hands in easily.
func isNil(o client.Object) bool {
	return o == nil || reflect.ValueOf(o).Kind() == reflect.Pointer && reflect.ValueOf(o).IsNil()
}
