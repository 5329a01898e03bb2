package storms

import (
	"time"

	"github.com/hduolab/quell/controller/storm"
)

// timeLayout has microseconds.
const timeLayout = "2006-01-02T15:04:05.000000Z07:00"

var subsecondTimestamp = Storm{
	Name:    "subsecond-timestamp",
	Mistake: "Stamps the status of one object with the time in microseconds.",
	Rate:    usualRate,
	Found: Found{
		Resource: widgets.GroupResource(), Objects: usual, Managers: []string{"subsecond-operator"},
		Field: lastUpdate, Verdict: storm.TimestampChurn,
	},
	start: writesStatus(func(status map[string]any, _ int) {
		status["lastUpdateTime"] = time.Now().UTC().Format(timeLayout)
	}),
}
