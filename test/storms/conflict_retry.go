package storms

import (
	"context"
	"errors"

	"github.com/hduolab/quell/controller/storm"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var conflictRetry = Storm{
	Name:    "conflict-retry",
	Mistake: "Retries an update after a 409 without reading the object anew.",
	Rate:    usualRate,
	Found: Found{
		Resource: widgets.GroupResource(), Objects: usual, Managers: []string{"stale-operator"},
		Verdict: storm.RejectedRetries, InAuditLogOnly: true,
	},
	start: func(ctx context.Context, s *site) (pass, error) {
		made, err := s.create(ctx)
		if err != nil {
			return nil, err
		}
		stale := made[0]
		if _, err := s.user.apply(ctx, widgets, stale.GetName(), sized(2)); err != nil {
			return nil, err
		}
		return func(ctx context.Context) error {
			_, err := s.operators[0].in(widgets).UpdateStatus(ctx, stale, metav1.UpdateOptions{FieldManager: s.operators[0].name})
			if err == nil {
				return errors.New("the update of a stale object was accepted")
			}
			if apierrors.IsConflict(err) {
				return nil
			}
			return err
		}, nil
	},
}
