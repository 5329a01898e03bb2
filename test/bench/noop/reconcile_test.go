package noop

import (
	"testing"

	"github.com/hduolab/quell/test/bench/rivals"
	"github.com/hduolab/quell/test/localcluster"
)

// BenchmarkReconcile is a reconcile of an App that is Ready and of which nothing changed: what a resync or an event costs that
// comes to nothing. Who asks the API server all the same is slower by the time of that, and has its requests beside it.
func BenchmarkReconcile(b *testing.B) {
	s := startSite(b)
	for _, rival := range append([]rivals.Rival{rivals.Quell()}, rivals.All()...) {
		b.Run(rival.Name, func(b *testing.B) { benchmarkReconcile(b, s, rival) })
	}
}

func benchmarkReconcile(b *testing.B, s site, rival rivals.Rival) {
	c := s.start(b, rival)
	quiet := c.settle(b)
	since, before := c.mark(b), c.sent.Load()
	b.ReportAllocs()
	failed := 0
	for b.Loop() {
		if err := c.reconcileOnce(b.Context()); err != nil {
			failed++ // a conflict with the manager's own workers, which its write woke
		}
	}
	sent, served := c.sent.Load()-before, c.served(b, since)
	b.ReportMetric(float64(sent)/float64(b.N), "requests/op")
	if quiet && (sent > 0 || failed > 0 || len(served) > 0) {
		b.Fatalf("%d requests and %d errors in %d reconciles of which one had sent nothing before:\n%s", sent, failed, b.N, localcluster.Summary(served))
	}
	if !quiet && len(served) == 0 {
		b.Fatalf("the API server knows nothing of %d requests", sent)
	}
}
