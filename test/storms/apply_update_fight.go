package storms

import (
	"context"

	"github.com/hduolab/quell/controller/storm"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var applyUpdateFight = Storm{
	Name:    "apply-update-fight",
	Mistake: "One operator applies a field with force, and another sets it back with an update.",
	Rate:    usualRate,
	Found: Found{
		Resource: widgets.GroupResource(), Objects: usual, Managers: []string{"applying-operator", "updating-operator"},
		Field: ".spec.size", Verdict: storm.Fight,
	},
	start: func(ctx context.Context, s *site) (pass, error) {
		if _, err := s.create(ctx); err != nil {
			return nil, err
		}
		var applied *unstructured.Unstructured
		return func(ctx context.Context) (err error) {
			if applied == nil {
				applied, err = s.operators[0].apply(ctx, widgets, s.Objects[0], sized(2))
				return err
			}
			applied.Object["spec"] = sized(3)["spec"]
			_, err = s.operators[1].update(ctx, widgets, applied)
			applied = nil
			return err
		}, nil
	},
}
