package storms

import "github.com/hduolab/quell/controller/storm"

var counter = Storm{
	Name:    "counter",
	Mistake: "Counts its passes in the status.",
	Rate:    usualRate,
	Found: Found{
		Resource: widgets.GroupResource(), Objects: usual, Managers: []string{"counting-operator"},
		Field: ".status.passes", Verdict: storm.CounterChurn,
	},
	start: writesStatus(func(status map[string]any, n int) { status["passes"] = int64(n) }),
}
