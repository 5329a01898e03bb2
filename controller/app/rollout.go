package app

import (
	"time"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
)

// rollout tells how far a Deployment is, by the rules of kubectl rollout status and kstatus. A new generation that is not
// observed yet is no rollout if it was untouched by us and this App was rolled out: every annotation that anybody writes
// to a Deployment makes one.
func rollout(app *quellv1alpha1.App, d *appsv1.Deployment, untouched bool) (stalled, moving *finding) {
	switch {
	case d == nil:
		return nil, found(reasonCreating, "Deployment %q is being created", app.Name)
	case d.Status.ObservedGeneration < d.Generation && (!untouched || !wasRolledOut(app)):
		return nil, found(reasonRollingOut, "the newest generation is rolling out")
	case isStuck(d):
		return found(reasonStuck, "Deployment %q made no progress within its deadline; look at its Pods", d.Name), nil
	case d.Status.UpdatedReplicas < wantedReplicas(app, d), d.Status.Replicas > wantedReplicas(app, d):
		return nil, found(reasonRollingOut, "the newest generation is rolling out")
	case d.Status.AvailableReplicas < wantedReplicas(app, d):
		return nil, found(reasonUnavailable, "not all replicas of the newest generation serve yet")
	}
	return nil, nil
}

// isComplete reports whether a Deployment has nothing left to do, as kubectl rollout status does.
func isComplete(d *appsv1.Deployment) bool {
	want := ptr.Deref(d.Spec.Replicas, 1)
	return d.Status.ObservedGeneration >= d.Generation && d.Status.UpdatedReplicas >= want &&
		d.Status.Replicas <= d.Status.UpdatedReplicas && d.Status.AvailableReplicas >= d.Status.UpdatedReplicas
}

// isStuck reports whether a Deployment made no progress for progressDeadlineSeconds.
func isStuck(d *appsv1.Deployment) bool {
	c := deploymentCondition(d, appsv1.DeploymentProgressing)
	return c != nil && c.Reason == reasonStuck
}

// lastProgress is when the Deployment controller last saw progress.
func lastProgress(d *appsv1.Deployment) time.Time {
	if c := deploymentCondition(d, appsv1.DeploymentProgressing); c != nil {
		return c.LastUpdateTime.Time
	}
	return d.CreationTimestamp.Time
}

// isAvailable reports whether enough Pods serve, of whatever generation.
func isAvailable(d *appsv1.Deployment) bool {
	if d == nil {
		return false
	}
	c := deploymentCondition(d, appsv1.DeploymentAvailable)
	return c != nil && c.Status == corev1.ConditionTrue
}

// deploymentCondition is the condition of a type, nil when there is none.
func deploymentCondition(d *appsv1.Deployment, kind appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range d.Status.Conditions {
		if c := &d.Status.Conditions[i]; c.Type == kind {
			return c
		}
	}
	return nil
}

// wasRolledOut reports whether this generation has been rolled out before: lacking replicas now is a loss, not a rollout.
func wasRolledOut(app *quellv1alpha1.App) bool {
	c := meta.FindStatusCondition(app.Status.Conditions, quellv1alpha1.ConditionProgressing)
	return c != nil && c.Reason == reasonRolledOut && c.ObservedGeneration == app.Generation
}

// wantedReplicas is the number of Pods with which an App is complete, whoever set it.
func wantedReplicas(app *quellv1alpha1.App, d *appsv1.Deployment) int32 {
	if d == nil {
		return desiredReplicas(app)
	}
	return ptr.Deref(d.Spec.Replicas, 1)
}

// rolledOutImage is the image of the application's container in a Deployment that is rolled out, else "".
func rolledOutImage(d *appsv1.Deployment) string {
	if d == nil || !isComplete(d) {
		return ""
	}
	for _, c := range d.Spec.Template.Spec.Containers {
		if c.Name == containerName {
			return c.Image
		}
	}
	return ""
}

// explained are the findings on a rollout with the cause, where it is known, in the place of the bare fact.
func explained(stalled, moving, why *finding) (*finding, *finding) {
	switch {
	case why == nil:
		return stalled, moving
	case stalled != nil && stalled.reason == reasonStuck:
		return found(why.reason, "no progress within the deadline: %s", why.message), nil
	case moving != nil && (moving.reason == reasonRollingOut || moving.reason == reasonUnavailable):
		return nil, why
	}
	return stalled, moving
}
