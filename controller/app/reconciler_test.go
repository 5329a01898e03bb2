package app

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hduolab/quell/controller/ssa"
)

func TestNextLook(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{}, "shop", errors.New("modified"))
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "shop", errors.New("no"))
	result := func(o ssa.Outcome, after time.Duration) applied {
		return applied{Result: ssa.Result{Outcome: o, RetryAfter: after}}
	}
	for name, c := range map[string]struct {
		children  []applied
		status    ssa.Result
		statusErr error
		again     time.Duration
		after     time.Duration
		backOff   bool
	}{
		"all is well":                       {children: []applied{result(ssa.Unchanged, 0), result(ssa.Applied, 0)}},
		"details settle":                    {status: ssa.Result{Outcome: ssa.Settling, RetryAfter: 2 * time.Second}, after: 2 * time.Second},
		"a rollout that is not done":        {again: 20 * time.Second, after: 20 * time.Second},
		"the sooner pause counts":           {children: []applied{result(ssa.Contended, 20*time.Second), result(ssa.Contended, 10*time.Second)}, after: 10 * time.Second},
		"a pause before a look at a person": {children: []applied{result(ssa.Contended, 20*time.Second), {foreign: "x"}}, after: 20 * time.Second},
		"rejected":                          {children: []applied{{err: invalid}}, after: time.Minute},
		"content is invalid":                {children: []applied{{err: &ssa.InvalidContentError{}}}, after: time.Minute},
		"forbidden":                         {children: []applied{{err: forbidden}}, after: time.Minute},
		"name taken":                        {children: []applied{{foreign: "x"}}, after: time.Minute},
		"waiting for a deletion":            {children: []applied{{leaving: true}}, after: time.Minute},
		"conflict as asked":                 {children: []applied{{child: child{live: &corev1.Service{}}, Result: ssa.Result{Outcome: ssa.Conflicted}}}, after: time.Minute},
		"does not stick":                    {children: []applied{result(ssa.DoesNotStick, 9*time.Minute)}, after: 9 * time.Minute},
		"made by somebody else meanwhile":   {children: []applied{{child: child{}, Result: ssa.Result{Outcome: ssa.Conflicted}}}, after: time.Second},
		"changed meanwhile":                 {children: []applied{result(ssa.Stale, 0)}, after: time.Second},
		"changed again and again":           {children: []applied{result(ssa.Stale, 500*time.Millisecond)}, after: 500 * time.Millisecond},
		"gone":                              {children: []applied{result(ssa.Gone, 0)}, after: time.Second},
		"replaced":                          {children: []applied{result(ssa.Replaced, 0)}, after: time.Second},
		"status forbidden":                  {statusErr: forbidden, after: time.Minute},
		"status of an App that is gone":     {status: ssa.Result{Outcome: ssa.Gone}},
		"server busy":                       {children: []applied{{err: apierrors.NewTooManyRequests("busy", 1)}}, backOff: true},
		"conflict of versions":              {children: []applied{{err: conflict}}, backOff: true},
		"unreachable":                       {children: []applied{{err: errors.New("connection refused")}}, backOff: true},
		"time out":                          {statusErr: context.DeadlineExceeded, backOff: true},
		"one rejected, one unreachable":     {children: []applied{{err: invalid}, {err: errors.New("connection refused")}}, backOff: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := next(c.children, c.status, c.statusErr, c.again)
			if c.backOff {
				g.Expect(err).To(HaveOccurred())
				g.Expect(got.RequeueAfter).To(BeZero())
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got.RequeueAfter).To(Equal(c.after))
		})
	}
}
