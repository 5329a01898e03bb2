package storms

import (
	"fmt"

	"github.com/hduolab/quell/controller/storm"
)

// maxHistory is where the list begins anew: the API server would refuse an object of some MiB.
const maxHistory = 10_000

var growingList = Storm{
	Name:    "growing-list",
	Mistake: "Adds a line to a list in the status on each pass.",
	Rate:    usualRate,
	Found: Found{
		Resource: widgets.GroupResource(), Objects: usual, Managers: []string{"growing-operator"},
		Field: ".status.history", Verdict: storm.UnboundedGrowth,
	},
	start: writesStatus(func(status map[string]any, n int) {
		history, _ := status["history"].([]any)
		if len(history) == maxHistory {
			history = nil
		}
		status["history"] = append(history, fmt.Sprintf("pass %d", n))
	}),
}
