package eventfilter_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/event"
)

// BenchmarkOwnWrites is what it costs to tell a status write of our own, which is dropped, from somebody else's, which passes.
func BenchmarkOwnWrites(b *testing.B) {
	s := newServer(b)
	before := s.see()
	s.apply(manager, `{"replicas": 2, "conditions": [`+available+`]}`)
	ours := event.UpdateEvent{ObjectOld: before, ObjectNew: s.see(manager)}
	s = newServer(b)
	before = s.see()
	s.apply("somebody", `{"replicas": 3}`)
	foreign := event.UpdateEvent{ObjectOld: before, ObjectNew: s.see("somebody")}
	for name, e := range map[string]event.UpdateEvent{"dropped": ours, "passed": foreign} {
		b.Run(name, func(b *testing.B) {
			dropped := own.Dropped()
			b.ReportAllocs()
			for b.Loop() {
				if dropped.Update(e) != (name == "passed") {
					b.Fatal("the event is taken for another writer's")
				}
			}
		})
	}
}
