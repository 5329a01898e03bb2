package storms

import (
	"context"

	"github.com/hduolab/quell/controller/storm"
)

var forceFight = Storm{
	Name:    "force-fight",
	Mistake: "Two operators apply different values of one field, each with force.",
	Rate:    usualRate,
	Found: Found{
		Resource: widgets.GroupResource(), Objects: usual, Managers: []string{"blue-operator", "green-operator"},
		Field: ".spec.size", Verdict: storm.Fight,
	},
	start: func(ctx context.Context, s *site) (pass, error) {
		if _, err := s.create(ctx); err != nil {
			return nil, err
		}
		sent := 0
		return func(ctx context.Context) error {
			turn := sent % len(s.operators)
			sent++
			_, err := s.operators[turn].apply(ctx, widgets, s.Objects[0], sized(2+turn))
			return err
		}, nil
	},
}

func sized(n int) map[string]any { return map[string]any{"spec": map[string]any{"size": int64(n)}} }
