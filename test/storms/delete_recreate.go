package storms

import (
	"context"

	"github.com/hduolab/quell/controller/storm"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var deleteRecreate = Storm{
	Name:    "delete-recreate",
	Mistake: "Deletes its object and creates it again instead of updating it.",
	Rate:    usualRate,
	Found: Found{
		Resource: widgets.GroupResource(), Objects: usual, Managers: []string{"replacing-operator"},
		Verdict: storm.DeleteRecreate,
	},
	start: func(_ context.Context, s *site) (pass, error) {
		o, exists := s.operators[0], false
		return func(ctx context.Context) error {
			exists = !exists
			if exists {
				_, err := o.create(ctx, widgets, s.Objects[0])
				return err
			}
			return o.in(widgets).Delete(ctx, s.Objects[0], metav1.DeleteOptions{})
		}, nil
	},
}
