package storms

import (
	"fmt"

	"github.com/hduolab/quell/controller/storm"
	"k8s.io/apimachinery/pkg/util/uuid"
)

var volatileText = Storm{
	Name:    "volatile-text",
	Mistake: "Puts the id of a request into the message of a condition.",
	Rate:    usualRate,
	Found: Found{
		Resource: widgets.GroupResource(), Objects: usual, Managers: []string{"verbose-operator"},
		Field: readyMessage, Verdict: storm.VolatileText,
	},
	start: writesStatus(func(status map[string]any, _ int) {
		status["conditions"] = []any{map[string]any{
			"type": "Ready", "status": "False", "reason": "BackendFailed", "lastTransitionTime": "2026-01-01T00:00:00Z",
			"message": fmt.Sprintf("the backend is not available, request %s", uuid.NewUUID()),
		}}
	}),
}
