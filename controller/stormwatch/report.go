package stormwatch

import (
	"context"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/ssa"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// report writes the status if its urgency allows that by now, and tells people of what it says first, also when it is there already:
// the answer to the write may have been lost. A failure is not returned: the work queue would make the next look wait for longer and
// longer.
func (r *Reconciler) report(ctx context.Context, w *running, seen observed, status *quellv1alpha1.StormWatchStatus, u urgency) {
	if w.memory.history.wait(u, seen.now) > 0 {
		w.setNamed(&seen.watch.Status)
		return
	}
	log := logf.FromContext(ctx)
	written, err := r.status.Write(ctx, ssa.Intent{
		Desired: configuration(seen.watch.Name, status), Live: seen.watch, Inputs: ssa.Generation(seen.watch),
	})
	switch {
	case err != nil:
		log.Error(err, "status not written")
		w.memory.history = w.memory.history.broke(seen.now)
		return
	case written.Wrote():
		w.memory.history = w.memory.history.wrote(u, seen.now)
		r.tell(ctx, w, seen, status)
		log.V(1).Info("status", "result", written.String())
	case written.Outcome == ssa.Unchanged || written.Outcome == ssa.NoOp:
		r.tell(ctx, w, seen, status)
	case written.Began && written.Held():
		log.Info("status cannot be kept up", "result", written.String())
	}
	w.setNamed(status)
}
