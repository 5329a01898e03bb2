package storms

import "github.com/hduolab/quell/controller/storm"

var noOpWrites = Storm{
	Name:    "no-op-writes",
	Mistake: "Sends a status that does not differ on each pass.",
	Rate:    usualRate,
	Found: Found{
		Resource: widgets.GroupResource(), Objects: usual, Managers: []string{"idle-operator"},
		Verdict: storm.NoOpWrites, InAuditLogOnly: true,
	},
	start: writesStatus(func(status map[string]any, _ int) { status["phase"] = "Ready" }),
}
