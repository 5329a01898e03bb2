package app

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	quellv1alpha1ac "github.com/hduolab/quell/applyconfig/quell/v1alpha1"
	"github.com/hduolab/quell/controller/ssa"
	appsv1 "k8s.io/api/apps/v1"
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
	suspended   bool
	// rows are status.children, conflicts status.conflicts.
	rows      []*quellv1alpha1ac.AppChildApplyConfiguration
	conflicts []quellv1alpha1.FieldConflict
	// aspects are the conditions that other files decide.
	aspects []*aspect
}

// aspect is a condition that tells of one thing beside the rollout and has no part in Ready.
type aspect struct {
	kind string
	is   bool
	finding
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
		WithRendering(renderingToKeep(seen)).
		WithChildren(p.rows...).
		WithConflicts(conflictRows(p.conflicts)...).
		WithConditions(p.conditions(app)...)
	if seen.version != "" {
		status.WithOperatorVersion(seen.version)
	}
	setReplicas(status, app, p.deployment)
	setImages(status, app, p.deployment)
	if e := endpoint(app); e != "" && hasService(children) {
		status.WithEndpoint(e)
	}
	setEndpoints(status, app, children)
	return quellv1alpha1ac.App(app.Name, app.Namespace).WithStatus(status)
}

// withNewestStatus is an App with the status that was last written, should the cache be behind it: part of it is kept.
func (r *Reconciler) withNewestStatus(app *quellv1alpha1.App) *quellv1alpha1.App {
	newest, ok := r.status.Newest(app).(*quellv1alpha1.App)
	if !ok || newest == app {
		return app
	}
	app = app.DeepCopy()
	app.Status = newest.Status
	return app
}

// look sums up the children.
func look(seen observed, children []applied) picture {
	p := picture{deployment: seen.deployment(), terminating: deletionPending(seen.app), suspended: isSuspended(seen.app)}
	var stuck, rolling *finding
	untouched := false
	for _, c := range children {
		stalled, moving := problem(c)
		p.stalled, p.moving = cmp.Or(p.stalled, stalled), cmp.Or(p.moving, moving)
		if c.kind == kindDeployment {
			p.deployment, _ = c.current().(*appsv1.Deployment)
			stuck, rolling, untouched = stalled, moving, c.Outcome == ssa.Unchanged
		}
	}
	held := heldBack(children)
	p.moving = cmp.Or(held, p.moving)
	if !p.suspended {
		p.stalled, p.moving = cmp.Or(p.stalled, seen.configStalled), cmp.Or(p.moving, seen.configMoving)
	}
	stalled, moving := rollout(seen.app, p.deployment, untouched)
	p.degraded = rolling == nil && moving != nil && moving.reason == reasonUnavailable && wasRolledOut(seen.app)
	stalled, moving = explained(stalled, moving, seen.stuck.why)
	p.stalled, p.moving = cmp.Or(p.stalled, stalled), cmp.Or(p.moving, moving, lack(children))
	p.available = isAvailable(p.deployment)
	p.setProgress(cmp.Or(stuck, stalled), cmp.Or(held, rolling, moving))
	p.rows = childRows(seen, children, cmp.Or(stalled, moving))
	p.conflicts = fieldConflicts(seen, children)
	p.aspects = []*aspect{autoscalingActive(seen, children), fieldConflict(p.conflicts)}
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

func (p picture) phase() quellv1alpha1.AppPhase {
	switch {
	case p.terminating:
		return quellv1alpha1.PhaseTerminating
	case p.suspended:
		return quellv1alpha1.PhaseSuspended
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
		at(quellv1alpha1.ConditionProgressing, !p.failed && p.progress.reason != reasonSuspended, p.progress),
		at(quellv1alpha1.ConditionReady, p.ready(), p.readiness()),
	}
	if p.moving != nil && p.moving.reason != reasonSuspended && p.stalled == nil && !p.terminating {
		conditions = append(conditions, at(quellv1alpha1.ConditionReconciling, true, *p.moving))
	}
	if p.stalled != nil && !p.terminating {
		conditions = append(conditions, at(quellv1alpha1.ConditionStalled, true, *p.stalled))
	}
	for _, a := range p.aspects {
		if a != nil { // else the condition is absent
			conditions = append(conditions, at(a.kind, a.is, a.finding))
		}
	}
	for _, kind := range lingering(app) {
		if !slices.ContainsFunc(conditions, func(c *metav1ac.ConditionApplyConfiguration) bool { return *c.Type == kind }) {
			conditions = append(conditions, at(kind, false, over))
		}
	}
	slices.SortFunc(conditions, func(a, b *metav1ac.ConditionApplyConfiguration) int { return cmp.Compare(*a.Type, *b.Type) })
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
		WithReady(fmt.Sprintf("%d/%d", counts.ReadyReplicas, wantedReplicas(app, d)))
}

// setImages says which image is asked for, which ones are in force and which one the last complete rollout brought.
func setImages(status *quellv1alpha1ac.AppStatusApplyConfiguration, app *quellv1alpha1.App, d *appsv1.Deployment) {
	status.WithImage(app.Spec.Image)
	if images := images(app, d); len(images) > 0 {
		status.WithImages(images...)
	}
	if image := cmp.Or(rolledOutImage(d), app.Status.RolledOutImage); image != "" {
		status.WithRolledOutImage(image)
	}
	if revision := revisionOf(d); revision > 0 {
		status.WithRevision(revision)
	}
}

// revisionOf is what kubectl rollout history calls a Deployment's newest revision, 0 before there is one.
func revisionOf(d *appsv1.Deployment) int64 {
	if d == nil {
		return 0
	}
	n, err := strconv.ParseInt(d.Annotations[annotationRevision], 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
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
