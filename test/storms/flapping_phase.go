package storms

import "github.com/hduolab/quell/controller/storm"

var flappingPhase = Storm{
	Name:    "flapping-phase",
	Mistake: "Writes the phase Progressing when a pass begins and Ready when it ends.",
	Rate:    usualRate,
	Found: Found{
		Resource: widgets.GroupResource(), Objects: usual, Managers: []string{"flapping-operator"},
		Field: ".status.phase", Verdict: storm.Flapping,
	},
	start: writesStatus(func(status map[string]any, n int) { status["phase"] = []string{"Progressing", "Ready"}[n%2] }),
}
