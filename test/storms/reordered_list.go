package storms

import "github.com/hduolab/quell/controller/storm"

// endpoints are in a map, which Go goes over in another order each time.
var endpoints = map[string]bool{"10.0.0.1": true, "10.0.0.2": true, "10.0.0.3": true, "10.0.0.4": true, "10.0.0.5": true}

var reorderedList = Storm{
	Name:    "reordered-list",
	Mistake: "Writes a list in the random order of a map.",
	Rate:    usualRate,
	Found: Found{
		Resource: widgets.GroupResource(), Objects: usual, Managers: []string{"unsorted-operator"},
		Field: ".status.endpoints", Verdict: storm.OrderFlip,
	},
	start: writesStatus(func(status map[string]any, _ int) {
		var list []any
		for address := range endpoints {
			list = append(list, address)
		}
		status["endpoints"] = list
	}),
}
