package storms

import (
	"context"
	"time"

	"github.com/hduolab/quell/controller/storm"
)

// noStatusSubresource raises the generation with each write, so that no predicate on it ends the loop.
var noStatusSubresource = Storm{
	Name:    "no-status-subresource",
	Mistake: "Stamps the status of a kind that has no status subresource.",
	Rate:    usualRate,
	Found: Found{
		Resource: gadgets.GroupResource(), Objects: usual, Managers: []string{"plain-operator"},
		Field: lastUpdate, Verdict: storm.SpecChurn,
	},
	start: func(ctx context.Context, s *site) (pass, error) {
		made, err := s.create(ctx)
		if err != nil {
			return nil, err
		}
		gadget := made[0]
		return func(ctx context.Context) (err error) {
			gadget.Object["status"] = map[string]any{"lastUpdateTime": time.Now().UTC().Format(timeLayout)}
			gadget, err = s.operators[0].update(ctx, gadgets, gadget)
			return err
		}, nil
	},
}
