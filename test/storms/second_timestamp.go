package storms

import (
	"fmt"
	"time"

	"github.com/hduolab/quell/controller/storm"
)

// secondTimestamp needs many objects: where a pass over all takes less than a second, the next writes the same time again, which
// is no write, and the storm ends. So no object is written more than once per second, and the manager is told by all of them.
var secondTimestamp = Storm{
	Name:    "second-timestamp",
	Mistake: "Stamps the status of 40 objects with the time in seconds, in passes that take longer than a second.",
	Rate:    30,
	Found: Found{
		Resource: widgets.GroupResource(), Objects: numbered(40), Managers: []string{"second-operator"},
		Field: lastUpdate, Verdict: storm.TimestampChurn,
	},
	start: writesStatus(func(status map[string]any, _ int) {
		status["lastUpdateTime"] = time.Now().UTC().Format(time.RFC3339)
	}),
}

func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("w%d", i+1)
	}
	return names
}
