package storms

import (
	"context"

	"github.com/hduolab/quell/controller/storm"
)

// prunedContent is sent again since it is never found in the object. Each apply makes a version: the merge takes the content, and
// the schema, in which template has no properties, has it dropped afterwards.
var prunedContent = Storm{
	Name:    "pruned-content",
	Mistake: "Applies content that the schema of its kind does not know and that is dropped on storing.",
	Rate:    usualRate,
	Found: Found{
		Resource: widgets.GroupResource(), Objects: usual, Managers: []string{"persistent-operator"},
		Field: ".status.template.color", Verdict: storm.DoesNotStick,
	},
	start: func(ctx context.Context, s *site) (pass, error) {
		if _, err := s.create(ctx); err != nil {
			return nil, err
		}
		return func(ctx context.Context) error {
			content := map[string]any{"status": map[string]any{"phase": "Ready", "template": map[string]any{"color": "blue"}}}
			_, err := s.operators[0].apply(ctx, widgets, s.Objects[0], content, "status")
			return err
		}, nil
	},
}
