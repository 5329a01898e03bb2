package storms

import (
	"context"
	"fmt"
	"slices"

	"github.com/hduolab/quell/controller/storm"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Storm is a kind of storm, with the program that makes it.
type Storm struct {
	// Name in words joined by hyphens.
	Name string
	// Mistake of the program, in one sentence.
	Mistake string
	// Rate of its requests per second, unless Options say otherwise.
	Rate float64
	// Found is what a detector should find.
	Found Found

	start start
}

// Found is what is to be found of a storm.
type Found struct {
	// Resource and Objects that are written, by name; without names it is the resource as a whole.
	Resource schema.GroupResource
	Objects  []string
	// Managers are the field managers who write, and the user agents of their requests up to a slash.
	Managers []string
	// Field that moves, or that does not stick, as fieldowners.FormatPath writes it; "" where there is none.
	Field   string
	Verdict storm.Verdict
	// InAuditLogOnly is whether a watch shows nothing of it.
	InAuditLogOnly bool
}

// start makes what a program needs and returns its pass.
type start func(context.Context, *site) (pass, error)

// pass sends one request.
type pass func(context.Context) error

// What is written to.
var (
	widgets      = schema.GroupVersionResource{Group: "storms.example.com", Version: "v1", Resource: "widgets"}
	oldWidgets   = schema.GroupVersionResource{Group: "storms.example.com", Version: "v1beta1", Resource: "widgets"}
	gadgets      = schema.GroupVersionResource{Group: "storms.example.com", Version: "v1", Resource: "gadgets"}
	kindOf       = map[string]string{"widgets": "Widget", "gadgets": "Gadget"}
	usual        = []string{"w1"}
	usualRate    = 20.0
	lastUpdate   = ".status.lastUpdateTime"
	readyMessage = `.status.conditions[type="Ready"].message`
)

// All returns every kind of storm, those that a watch shows first.
func All() []Storm {
	return []Storm{
		secondTimestamp, subsecondTimestamp, counter, forceFight, applyUpdateFight, reorderedList, flappingPhase, noStatusSubresource,
		annotation, deleteRecreate, volatileText, prunedContent, versionFlip, growingList,
		noOpWrites, conflictRetry, listFlood,
	}
}

// Find returns the storm with a name. The error says that there is none.
func Find(name string) (Storm, error) {
	all := All()
	i := slices.IndexFunc(all, func(s Storm) bool { return s.Name == name })
	if i < 0 {
		return Storm{}, fmt.Errorf("there is no storm %q", name)
	}
	return all[i], nil
}
