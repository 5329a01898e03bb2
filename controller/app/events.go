package app

import (
	"fmt"
	"strings"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	quellv1alpha1ac "github.com/hduolab/quell/applyconfig/quell/v1alpha1"
	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/hduolab/quell/controller/ssa"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tell records events for transitions that were written. app is as it was before the write.
func (r *Reconciler) tell(app *quellv1alpha1.App, written *quellv1alpha1ac.AppStatusApplyConfiguration) {
	for _, c := range written.Conditions {
		before := meta.FindStatusCondition(app.Status.Conditions, *c.Type)
		if before != nil && before.Status == *c.Status && before.Reason == *c.Reason {
			continue
		}
		switch {
		case *c.Type == quellv1alpha1.ConditionStalled:
			r.Events.Eventf(app, nil, corev1.EventTypeWarning, *c.Reason, "Reconcile", "%s", *c.Message)
		case *c.Type == quellv1alpha1.ConditionReady && *c.Status == metav1.ConditionTrue:
			r.Events.Eventf(app, nil, corev1.EventTypeNormal, "Ready", "Reconcile", "%s", *c.Message)
		case *c.Type == quellv1alpha1.ConditionReconciling && *c.Reason == reasonContended:
			r.Events.Eventf(app, nil, corev1.EventTypeWarning, *c.Reason, "Reconcile", "%s", *c.Message)
		}
	}
}

// tellTaken records what was taken back from whom.
func (r *Reconciler) tellTaken(app *quellv1alpha1.App, children []applied) {
	for _, c := range children {
		if rivals := c.Rivals(); c.Wrote() && len(rivals) > 0 {
			note := fmt.Sprintf("%s %q: took %s back from %s", c.kind, c.name, strings.Join(c.Paths(), ", "), fieldowners.Join(rivals))
			r.Events.Eventf(app, c.Object, corev1.EventTypeWarning, "FieldTakenBack", "Apply", "%s", bounded(note))
		}
	}
}

// tellStatus records that the status cannot be kept up, when that begins: the status itself cannot tell.
func (r *Reconciler) tellStatus(app *quellv1alpha1.App, status ssa.Result) {
	if !status.Began {
		return
	}
	switch status.Outcome {
	case ssa.Contended, ssa.SelfChurn, ssa.DoesNotStick:
		r.Events.Eventf(app, nil, corev1.EventTypeWarning, "Status"+string(status.Outcome), "Report", "%s", bounded(status.String()))
	}
}
