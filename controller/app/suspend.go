package app

import (
	"context"
	"fmt"
	"strings"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/ssa"
)

// isSuspended reports whether nothing may be written to the App's children.
func isSuspended(app *quellv1alpha1.App) bool { return app.Spec.Suspend != nil && *app.Spec.Suspend }

// holdBack finds out, without a request that changes anything, whether a child is as the App asks.
func (r *Reconciler) holdBack(ctx context.Context, a applied) applied {
	a.err = nil
	switch {
	case a.invalid != nil:
		a.pending = true
	case a.desired == nil:
		a.pending = a.live != nil
	case a.live == nil, a.live.GetDeletionTimestamp() != nil, a.stalled != nil, a.moving != nil:
		a.pending = true
	default:
		preview, err := r.children.Preview(ctx, ssa.Intent{Desired: a.desired, Live: a.live, Rules: a.rules})
		a.Yielded = preview.Yielded
		a.Reasons, a.pending = preview.Reasons, err != nil || len(preview.Reasons) > 0
	}
	if !a.pending {
		a.Outcome = ssa.Unchanged
	}
	return a
}

// heldBack words what spec.suspend holds back, nil when the children are as the App asks. It is no reason to be Reconciling, for
// nothing is under way: with Ready False alone kstatus says InProgress, which ends when the App is resumed.
func heldBack(children []applied) *finding {
	var words []string
	for _, c := range children {
		if c.pending {
			words = append(words, strings.TrimSuffix(fmt.Sprintf("%s %q: %s", c.kind, c.name, enumerated(c.Paths())), ": "))
		}
	}
	if len(words) == 0 {
		return nil
	}
	return found(reasonSuspended, "spec.suspend holds changes back: %s", strings.Join(words, "; "))
}
