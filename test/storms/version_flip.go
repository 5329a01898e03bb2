package storms

import (
	"context"

	"github.com/hduolab/quell/controller/storm"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var versionFlip = Storm{
	Name:    "version-flip",
	Mistake: "Two releases of one operator apply the same content in different API versions under one name.",
	Rate:    usualRate,
	Found: Found{
		Resource: widgets.GroupResource(), Objects: usual, Managers: []string{"upgraded-operator"},
		Verdict: storm.APIVersionFlip,
	},
	start: func(ctx context.Context, s *site) (pass, error) {
		if _, err := s.create(ctx); err != nil {
			return nil, err
		}
		sent := 0
		return func(ctx context.Context) error {
			version := []schema.GroupVersionResource{widgets, oldWidgets}[sent%2]
			sent++
			_, err := s.operators[0].apply(ctx, version, s.Objects[0], map[string]any{"status": map[string]any{"phase": "Ready"}}, "status")
			return err
		}, nil
	},
}
