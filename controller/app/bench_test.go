package app

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hduolab/quell/applyconfig"
	"github.com/hduolab/quell/controller/ssa"
)

// BenchmarkDesired is what it costs to work out what is wanted of the children, and what the status says.
func BenchmarkDesired(b *testing.B) {
	_, s := converged(b)
	seen := observed{app: s.app(), live: map[string]client.Object{kindDeployment: s.deployment()}}
	b.Run("children", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			desiredChildren(seen)
		}
	})
	children := unchanged(seen)
	b.Run("status", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			desiredStatus(seen, children)
		}
	})
}

// BenchmarkStatusPreCheck is what it costs to find out that the status is as desired: the first time, and when it is remembered.
func BenchmarkStatusPreCheck(b *testing.B) {
	_, s := converged(b)
	seen := observed{app: s.app(), live: map[string]client.Object{kindDeployment: s.deployment()}}
	in := ssa.Intent{Desired: desiredStatus(seen, unchanged(seen)), Live: seen.app}
	check := func(b *testing.B, w *ssa.StatusWriter) {
		if result, err := w.Write(b.Context(), in); err != nil || result.Outcome != ssa.Unchanged {
			b.Fatal(result, err)
		}
	}
	b.Run("first", func(b *testing.B) {
		types := applyconfig.NewTypeConverter(s.scheme)
		b.ReportAllocs()
		for b.Loop() {
			check(b, writer(b, s, types))
		}
	})
	b.Run("remembered", func(b *testing.B) {
		w := writer(b, s, applyconfig.NewTypeConverter(s.scheme))
		check(b, w)
		b.ReportAllocs()
		for b.Loop() {
			check(b, w)
		}
	})
}

func writer(b *testing.B, s *shelf, types managedfields.TypeConverter) *ssa.StatusWriter {
	w, err := ssa.NewStatusWriter(ssa.StatusOptions{Options: ssa.Options{Client: s, Types: types, FieldManager: statusManager}})
	if err != nil {
		b.Fatal(err)
	}
	return w
}

// BenchmarkLook is a whole reconcile that comes to nothing, without the cache's own part: while the cache holds the very objects of
// the last one, and after an event that brought other objects of the same content.
func BenchmarkLook(b *testing.B) {
	for name, copies := range map[string]bool{"same": false, "copies": true} {
		b.Run(name, func(b *testing.B) {
			r, s := converged(b)
			s.copies = copies
			for range 2 {
				if result, err := once(r, b); err != nil || !result.IsZero() {
					b.Fatal(result, err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := once(r, b); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
