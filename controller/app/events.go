package app

import (
	"fmt"
	"slices"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	quellv1alpha1ac "github.com/hduolab/quell/applyconfig/quell/v1alpha1"
	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/hduolab/quell/controller/ssa"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
)

// tell records events for transitions that were written. app is as it was before the write.
func (r *Reconciler) tell(app *quellv1alpha1.App, written *quellv1alpha1ac.AppStatusApplyConfiguration) {
	for _, c := range written.Conditions {
		before := meta.FindStatusCondition(app.Status.Conditions, *c.Type)
		if before != nil && before.Status == *c.Status && before.Reason == *c.Reason {
			continue
		}
		switch {
		case *c.Type == quellv1alpha1.ConditionStalled && *c.Status == metav1.ConditionTrue:
			r.Events.Eventf(app, nil, corev1.EventTypeWarning, *c.Reason, "Reconcile", "%s", *c.Message)
		case *c.Type == quellv1alpha1.ConditionReady && *c.Status == metav1.ConditionTrue:
			r.Events.Eventf(anyVersion(app), nil, corev1.EventTypeNormal, "Ready", "Reconcile", "%s", *c.Message)
		case *c.Type == quellv1alpha1.ConditionReconciling && *c.Reason == reasonContended:
			r.Events.Eventf(app, nil, corev1.EventTypeWarning, *c.Reason, "Reconcile", "%s", *c.Message)
		case *c.Type == quellv1alpha1.ConditionFieldConflict && *c.Status == metav1.ConditionTrue:
			r.Events.Eventf(app, nil, corev1.EventTypeWarning, "FieldConflict", "Reconcile", "%s", *c.Message)
		}
	}
	if !deletionPending(app) && meta.IsStatusConditionTrue(app.Status.Conditions, quellv1alpha1.ConditionFieldConflict) && !says(written, quellv1alpha1.ConditionFieldConflict) {
		r.Events.Eventf(anyVersion(app), nil, corev1.EventTypeNormal, "FieldConflictEnded", "Reconcile", "nobody else owns fields that the App sets any more")
	}
}

// anyVersion is an App for events that say the same again and again. A recorder counts those in one object, a series, as long as they
// are about the same version, and each status is a new one. It keeps the first text, so other events need the version.
func anyVersion(app *quellv1alpha1.App) *quellv1alpha1.App {
	unversioned := *app
	unversioned.ResourceVersion = ""
	return &unversioned
}

// says reports whether a condition is in a status and True.
func says(status *quellv1alpha1ac.AppStatusApplyConfiguration, kind string) bool {
	return slices.ContainsFunc(status.Conditions, func(c metav1ac.ConditionApplyConfiguration) bool {
		return *c.Type == kind && *c.Status == metav1.ConditionTrue
	})
}

// tellTaken records what was taken back from whom.
func (r *Reconciler) tellTaken(app *quellv1alpha1.App, children []applied) {
	for _, c := range children {
		if c.adopts && c.Wrote() {
			r.Events.Eventf(app, c.Object, corev1.EventTypeNormal, "Adopted", "Apply", "adopted %s %q, which was offered by its annotation %s", c.kind, c.name, AnnotationAdopt)
			continue
		}
		if rivals := c.Rivals(); c.Wrote() && len(rivals) > 0 {
			note := fmt.Sprintf("%s %q: took %s back from %s", c.kind, c.name, paths(ssa.Result{Reasons: c.Taken()}), fieldowners.Join(rivals))
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
