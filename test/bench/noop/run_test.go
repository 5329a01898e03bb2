package noop

import (
	"strings"
	"testing"

	"github.com/hduolab/quell/test/bench/figures"
	. "github.com/onsi/gomega"
	"golang.org/x/tools/benchmark/parse"
)

const output = `goos: linux
BenchmarkReconcile/deep-equal-2         	    2000	     30.5 ns/op	         0 requests/op	   31508 B/op	     388 allocs/op
BenchmarkReconcile/quell-2              	    2000	     10 ns/op	         0 requests/op	   100 B/op	     3 allocs/op
BenchmarkReconcile/quell-2              	    2000	     40 ns/op	         0 requests/op	   300 B/op	     5 allocs/op
BenchmarkReconcile/quell-2              	    2000	     20 ns/op	         0 requests/op	   200 B/op	     4 allocs/op
PASS
`

func TestMedians(t *testing.T) {
	g := NewWithT(t)
	found := map[string][]*parse.Benchmark{}
	g.Expect(collect(found, strings.NewReader(output))).To(Succeed())
	g.Expect(medians(found)).To(Equal([]figures.Benchmark{
		{Name: "Reconcile/deep-equal", Time: 30.5, Bytes: 31508, Allocs: 388, Runs: 1, Spread: 1},
		{Name: "Reconcile/quell", Time: 20, Bytes: 200, Allocs: 4, Runs: 3, Spread: 4},
	}))
	g.Expect(median([]float64{1, 3})).To(Equal(2.0))
	g.Expect(collect(found, strings.NewReader("PASS\n"))).To(MatchError("there is none"))
}
