package rivals

import (
	"fmt"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

// container is the name of the application's container, as in the Deployments that Quell makes.
const container = "app"

// reasonRollingOut is that of an App whose Deployment is not yet as its newest generation asks.
const reasonRollingOut = "RollingOut"

// selector is what selects the Pods of an App.
func selector(app *quellv1alpha1.App) map[string]string {
	return map[string]string{"app.kubernetes.io/name": app.Name, "app.kubernetes.io/instance": app.Name}
}

func replicas(app *quellv1alpha1.App) int32 { return ptr.Deref(app.Spec.Replicas, 1) }

// set writes what an App asks for into its Deployment, field by field: what the API server or others add stays, so that nothing
// differs from the live object unless somebody changed it.
func set(deployment *appsv1.Deployment, app *quellv1alpha1.App) {
	deployment.Labels = with(deployment.Labels, selector(app))
	deployment.Spec.Replicas = ptr.To(replicas(app))
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: selector(app)}
	template := &deployment.Spec.Template
	template.Labels = with(template.Labels, selector(app))
	for i := range template.Spec.Containers {
		if c := &template.Spec.Containers[i]; c.Name == container {
			c.Image = app.Spec.Image
			return
		}
	}
	template.Spec.Containers = append(template.Spec.Containers, corev1.Container{Name: container, Image: app.Spec.Image})
}

func with(into, more map[string]string) map[string]string {
	if into == nil {
		into = map[string]string{}
	}
	for k, v := range more {
		into[k] = v
	}
	return into
}

// summary is how an App is, before it is put into anybody's conditions.
type summary struct {
	phase quellv1alpha1.AppPhase
	// progress is the reason and message of Progressing, and of Ready while it is not.
	reason, message string
	ready           bool
	available       bool
}

// summarize tells how the Deployment of an App is, by the rules of kubectl rollout status.
func summarize(app *quellv1alpha1.App, d *appsv1.Deployment) summary {
	want := replicas(app)
	s := summary{phase: quellv1alpha1.PhaseProgressing, reason: reasonRollingOut, message: "the newest generation is rolling out"}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentAvailable {
			s.available = c.Status == corev1.ConditionTrue
		}
	}
	switch {
	case d.Status.ObservedGeneration < d.Generation, d.Status.UpdatedReplicas < want, d.Status.Replicas > want:
	case d.Status.AvailableReplicas < want:
		s.reason, s.message = "ReplicasUnavailable", "not all replicas of the newest generation serve"
		if wasRolledOut(app) {
			s.phase = quellv1alpha1.PhaseDegraded
		}
	default:
		s.reason, s.message = "RolledOut", "the newest generation is rolled out"
		s.ready = s.available
	}
	if s.ready {
		s.phase = quellv1alpha1.PhaseRunning
	}
	return s
}

// wasRolledOut reports whether this generation was rolled out before: lacking replicas is a loss then.
func wasRolledOut(app *quellv1alpha1.App) bool {
	degraded := app.Status.Phase == quellv1alpha1.PhaseRunning || app.Status.Phase == quellv1alpha1.PhaseDegraded
	return degraded && app.Status.ObservedGeneration == app.Generation
}

// describe writes everything but the conditions into the status of an App.
func describe(app *quellv1alpha1.App, d *appsv1.Deployment) summary {
	s := summarize(app, d)
	status := &app.Status
	status.ObservedGeneration = app.Generation
	status.Phase = s.phase
	status.Ready = fmt.Sprintf("%d/%d", d.Status.ReadyReplicas, replicas(app))
	status.Replicas = ptr.To(d.Status.Replicas)
	status.ReadyReplicas = ptr.To(d.Status.ReadyReplicas)
	status.AvailableReplicas = ptr.To(d.Status.AvailableReplicas)
	status.UpdatedReplicas = ptr.To(d.Status.UpdatedReplicas)
	status.Selector = labels.SelectorFromSet(selector(app)).String()
	status.Image = app.Spec.Image
	return s
}

// conditions are the App's conditions without transition times.
func (s summary) conditions(generation int64) []metav1.Condition {
	condition := func(kind string, is bool, reason, message string) metav1.Condition {
		status := metav1.ConditionFalse
		if is {
			status = metav1.ConditionTrue
		}
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: generation}
	}
	ready := condition(quellv1alpha1.ConditionReady, s.ready, s.reason, s.message)
	if s.ready {
		ready.Reason, ready.Message = "AllReplicasReady", "the newest generation serves with all its replicas"
	}
	reason, message := s.availability()
	return []metav1.Condition{
		condition(quellv1alpha1.ConditionAvailable, s.available, reason, message),
		condition(quellv1alpha1.ConditionProgressing, true, s.reason, s.message),
		ready,
	}
}

func (s summary) availability() (reason, message string) {
	if s.available {
		return "MinimumReplicasAvailable", "enough replicas serve"
	}
	return "MinimumReplicasUnavailable", "not enough replicas serve"
}

// report writes the whole status of an App; a condition whose status stays keeps its transition time.
func report(app *quellv1alpha1.App, d *appsv1.Deployment) {
	for _, c := range describe(app, d).conditions(app.Generation) {
		meta.SetStatusCondition(&app.Status.Conditions, c)
	}
}
