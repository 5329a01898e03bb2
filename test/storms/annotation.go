package storms

import (
	"context"
	"strconv"

	"github.com/hduolab/quell/controller/storm"
)

var annotation = Storm{
	Name:    "annotation",
	Mistake: "Counts its passes in an annotation of the object that it reconciles.",
	Rate:    usualRate,
	Found: Found{
		Resource: widgets.GroupResource(), Objects: usual, Managers: []string{"annotating-operator"},
		Field: `.metadata.annotations["example.com/passes"]`, Verdict: storm.MetadataChurn,
	},
	start: func(ctx context.Context, s *site) (pass, error) {
		made, err := s.create(ctx)
		if err != nil {
			return nil, err
		}
		widget, passes := made[0], 0
		return func(ctx context.Context) (err error) {
			passes++
			widget.SetAnnotations(map[string]string{"example.com/passes": strconv.Itoa(passes)})
			widget, err = s.operators[0].update(ctx, widgets, widget)
			return err
		}, nil
	},
}
