package app

import (
	"fmt"
	"slices"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	quellv1alpha1ac "github.com/hduolab/quell/applyconfig/quell/v1alpha1"
	"github.com/hduolab/quell/controller/ssa"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
)

// finding is one answer to "how is it?", ready to become a condition.
type finding struct {
	reason, message string
}

// picture is what the status says, before it is put into words for the API.
type picture struct {
	deployment *appsv1.Deployment
	// stalled is set when a person has to act, moving when the operator or the cluster is at work.
	stalled, moving *finding
	// progress tells how far the rollout is, and whether it is a failure.
	progress    finding
	failed      bool
	available   bool
	degraded    bool
	terminating bool
}

// ready is whether the newest generation serves as asked.
func (p picture) ready() bool {
	return p.stalled == nil && p.moving == nil && p.available && !p.terminating
}

// desiredStatus is the full status of an App: a pure function of what was seen and what became of the children.
func desiredStatus(seen observed, children []applied) *quellv1alpha1ac.AppApplyConfiguration {
	p := look(seen, children)
	app := seen.app
	status := quellv1alpha1ac.AppStatus().
		WithObservedGeneration(app.Generation).
		WithPhase(p.phase()).
		WithSelector(labels.SelectorFromSet(selectorLabels(app)).String()).
		WithConditions(p.conditions(app)...)
	setReplicas(status, app, p.deployment)
	if images := images(app, p.deployment); len(images) > 0 {
		status.WithImages(images...)
	}
	if e := endpoint(app); e != "" && healthy(children, kindService) {
		status.WithEndpoint(e)
	}
	return quellv1alpha1ac.App(app.Name, app.Namespace).WithStatus(status)
}

// look sums up the children.
func look(seen observed, children []applied) picture {
	p := picture{deployment: seen.deployment(), terminating: deletionPending(seen.app)}
	var stuck, rolling *finding
	untouched := false
	for _, c := range children {
		stalled, moving := problem(seen.app, c)
		p.stalled, p.moving = first(p.stalled, stalled), first(p.moving, moving)
		if c.kind == kindDeployment {
			p.deployment, _ = c.current().(*appsv1.Deployment)
			stuck, rolling, untouched = stalled, moving, c.Outcome == ssa.Unchanged
		}
	}
	stalled, moving := rollout(seen.app, p.deployment, untouched)
	p.stalled, p.moving = first(p.stalled, stalled), first(p.moving, moving)
	p.available = p.deployment != nil && deploymentCondition(p.deployment, appsv1.DeploymentAvailable) == corev1.ConditionTrue
	p.degraded = rolling == nil && moving != nil && moving.reason == reasonUnavailable && wasRolledOut(seen.app)
	p.setProgress(first(stuck, stalled), first(rolling, moving))
	return p
}

// setProgress words the rollout. Lacking replicas after it was rolled out is no step back.
func (p *picture) setProgress(stalled, moving *finding) {
	p.failed = stalled != nil && !p.terminating
	switch {
	case p.terminating:
		p.progress = finding{"Terminating", "the App is being deleted"}
	case p.failed:
		p.progress = *stalled
	case moving != nil && !p.degraded:
		p.progress = *moving
	default:
		p.progress = finding{reasonRolledOut, "the newest generation is rolled out"}
	}
}

func first(a, b *finding) *finding {
	if a != nil {
		return a
	}
	return b
}

// wasRolledOut reports whether this generation has been rolled out before: lacking replicas now is a loss, not a rollout.
func wasRolledOut(app *quellv1alpha1.App) bool {
	c := meta.FindStatusCondition(app.Status.Conditions, quellv1alpha1.ConditionProgressing)
	return c != nil && c.Reason == reasonRolledOut && c.ObservedGeneration == app.Generation
}

func (p picture) phase() quellv1alpha1.AppPhase {
	switch {
	case p.terminating:
		return quellv1alpha1.PhaseTerminating
	case p.stalled != nil:
		return quellv1alpha1.PhaseFailed
	case p.ready():
		return quellv1alpha1.PhaseRunning
	case p.degraded, p.moving != nil && p.moving.reason == reasonContended:
		return quellv1alpha1.PhaseDegraded
	case p.deployment == nil:
		return quellv1alpha1.PhasePending
	}
	return quellv1alpha1.PhaseProgressing
}

// conditions are the App's conditions, sorted by type, without transition times: the writer sets those.
func (p picture) conditions(app *quellv1alpha1.App) []*metav1ac.ConditionApplyConfiguration {
	at := func(kind string, is bool, f finding) *metav1ac.ConditionApplyConfiguration {
		status := metav1.ConditionFalse
		if is {
			status = metav1.ConditionTrue
		}
		return metav1ac.Condition().WithType(kind).WithStatus(status).WithReason(f.reason).WithMessage(f.message).
			WithObservedGeneration(app.Generation)
	}
	conditions := []*metav1ac.ConditionApplyConfiguration{
		at(quellv1alpha1.ConditionAvailable, p.available, availability(p.available)),
		at(quellv1alpha1.ConditionProgressing, !p.failed, p.progress),
		at(quellv1alpha1.ConditionReady, p.ready(), p.readiness()),
	}
	if p.moving != nil && p.stalled == nil && !p.terminating {
		conditions = append(conditions, at(quellv1alpha1.ConditionReconciling, true, *p.moving))
	}
	if p.stalled != nil && !p.terminating {
		conditions = append(conditions, at(quellv1alpha1.ConditionStalled, true, *p.stalled))
	}
	return conditions
}

func availability(available bool) finding {
	if available {
		return finding{"MinimumReplicasAvailable", "enough replicas serve"}
	}
	return finding{"MinimumReplicasUnavailable", "not enough replicas serve"}
}

func (p picture) readiness() finding {
	switch {
	case p.terminating:
		return p.progress
	case p.ready():
		return finding{"AllReplicasReady", "the newest generation serves with all its replicas"}
	case p.stalled != nil:
		return *p.stalled
	case p.moving != nil:
		return *p.moving
	}
	return availability(p.available)
}

// setReplicas copies the counts; they are pointers, since a zero has to be said too.
func setReplicas(status *quellv1alpha1ac.AppStatusApplyConfiguration, app *quellv1alpha1.App, d *appsv1.Deployment) {
	var counts appsv1.DeploymentStatus
	if d != nil {
		counts = d.Status
	}
	status.WithReplicas(counts.Replicas).
		WithReadyReplicas(counts.ReadyReplicas).
		WithAvailableReplicas(counts.AvailableReplicas).
		WithUpdatedReplicas(counts.UpdatedReplicas).
		WithReady(fmt.Sprintf("%d/%d", counts.ReadyReplicas, desiredReplicas(app)))
}

// images are those of the Deployment's Pod template, sorted; before there is one, the image that is asked for.
func images(app *quellv1alpha1.App, d *appsv1.Deployment) []string {
	if d == nil {
		return []string{app.Spec.Image}
	}
	var images []string
	for _, c := range d.Spec.Template.Spec.Containers {
		images = append(images, c.Image)
	}
	slices.Sort(images)
	return slices.Compact(images)
}

func deploymentCondition(d *appsv1.Deployment, kind appsv1.DeploymentConditionType) corev1.ConditionStatus {
	for _, c := range d.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return corev1.ConditionUnknown
}
