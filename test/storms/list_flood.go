package storms

import (
	"context"

	"github.com/hduolab/quell/controller/storm"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var listFlood = Storm{
	Name:    "list-flood",
	Mistake: "Lists all objects on each pass instead of reading a cache.",
	Rate:    usualRate,
	Found: Found{
		Resource: widgets.GroupResource(), Managers: []string{"listing-operator"},
		Verdict: storm.ReadFlood, InAuditLogOnly: true,
	},
	start: func(_ context.Context, s *site) (pass, error) {
		return func(ctx context.Context) error {
			_, err := s.operators[0].in(widgets).List(ctx, metav1.ListOptions{})
			return err
		}, nil
	},
}
