package app

import (
	"math"
	"slices"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/hduolab/quell/controller/ssa"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

const (
	// replicasField is the path of the number of Pods in a Deployment.
	replicasField = ".spec.replicas"
	// scaleSubresource is what autoscalers and kubectl scale write through.
	scaleSubresource = "scale"
	// autoscalerManager is the field manager under which Kubernetes' own autoscaler writes.
	autoscalerManager = "kube-controller-manager"
)

var replicasPath = fieldpath.MakePathOrDie("spec", "replicas")

// count is the verdict on a Deployment's spec.replicas.
type count struct {
	// value is what to state; nil leaves the field to another manager, which owns it.
	value *int32
	// unsure tells that the value takes Pods away, or the field from somebody: an outdated App or autoscaler must not do that.
	unsure bool
	// uncontested tells that to take the field is no conflict: its value stays, or an autoscaler that is gone left it behind.
	uncontested bool
}

// isHandedBack reports whether another number than that of an autoscaler that is gone is to be stated.
func (c count) isHandedBack() bool { return c.uncontested && c.unsure }

// replicas decides what the apply of the Deployment says about the number of Pods.
//
// An autoscaler writes through the scale subresource, and by that takes the field from us. Until it has done so we state the
// live value, for the API server sets a field that its only owner gives up to its default, 1; from then on we state
// nothing. Either is right only for the live Deployment that it was derived from, so the apply has to be exact.
func replicas(seen observed) count {
	d := seen.deployment()
	if d == nil {
		return count{value: ptr.To(beginning(seen))}
	}
	live, asked := ptr.Deref(d.Spec.Replicas, 1), desiredReplicas(seen.app)
	if !seen.autoscaled() && live == asked {
		return count{value: &asked, uncontested: true}
	}
	ours, others := holders(d)
	switch {
	case zeroed(seen) == ssa.Yield:
		return count{}
	case !seen.autoscaled():
		return count{value: &asked, unsure: asked < live || !ours, uncontested: !ours && leftBehind(seen.app, others)}
	case !ours && (len(others) == 0 || slices.ContainsFunc(others, hasScaled)):
		// Nobody is booked as the owner of a zero that came through the scale subresource.
		return count{}
	case live == 0 && ours && len(others) == 0 && seen.app.Spec.Autoscaling != nil:
		// At zero an autoscaler does nothing.
		return count{value: ptr.To(beginning(seen)), uncontested: true}
	}
	return count{value: &live, uncontested: true}
}

// count is what replicas decides. It takes all managedFields of the Deployment to be read, so one child is decided on with one.
func (o observed) count() count {
	if o.verdict != nil {
		return *o.verdict
	}
	return replicas(o)
}

// autoscaled tells whether an autoscaler sets the number of Pods, or is about to. One that the App does not want any more does
// so until it is gone.
func (o observed) autoscaled() bool { return o.app.Spec.Autoscaling != nil || len(o.scalers) > 0 }

func desiredReplicas(app *quellv1alpha1.App) int32 { return ptr.Deref(app.Spec.Replicas, 1) }

// beginning is the number of Pods of a Deployment that does not run yet: what the autoscaler last saw or asked for, else
// spec.replicas, within the autoscaler's bounds.
func beginning(seen observed) int32 {
	n, low, high := desiredReplicas(seen.app), int32(0), int32(math.MaxInt32)
	if len(seen.scalers) > 0 {
		s := &seen.scalers[0]
		low, high = ptr.Deref(s.Spec.MinReplicas, 1), s.Spec.MaxReplicas
		if last := max(s.Status.CurrentReplicas, s.Status.DesiredReplicas); last > 0 {
			n = last
		}
	}
	if own := seen.app.Spec.Autoscaling; own != nil {
		low, high = max(own.MinReplicas, 1), own.MaxReplicas
	}
	return min(max(n, low), high)
}

// holders tells who owns the number of Pods: whether we do, and who else.
func holders(d *appsv1.Deployment) (ours bool, others []fieldowners.Owner) {
	for _, o := range fieldowners.OwnersOf(fieldowners.Parse(d.ManagedFields), replicasPath) {
		if o.Manager == ChildManager && o.Operation == metav1.ManagedFieldsOperationApply && o.Subresource == "" {
			ours = true
		} else {
			others = append(others, o)
		}
	}
	return ours, others
}

// hasScaled reports whether an owner of the number of Pods set it as autoscalers do. An Apply through the scale subresource
// does not count: whoever applies can give the field up again.
func hasScaled(o fieldowners.Owner) bool {
	return o.Subresource == scaleSubresource && o.Operation == metav1.ManagedFieldsOperationUpdate
}

// withoutHandover drops from the reasons of a write that the number of Pods was taken where that is no conflict.
func (a applied) withoutHandover() applied {
	if a.uncontested && a.Outcome == ssa.Applied {
		a.Reasons = slices.DeleteFunc(slices.Clone(a.Reasons), func(r ssa.Reason) bool { return r.Path == replicasField })
	}
	return a
}

// leftBehind reports whether the owners of the number of Pods are what an autoscaler that is gone left, as opposed to people and
// other programs: an autoscaler was in force when the status was last written, or it is Kubernetes' own, which may write once
// more after its end.
func leftBehind(app *quellv1alpha1.App, owners []fieldowners.Owner) bool {
	if meta.FindStatusCondition(app.Status.Conditions, quellv1alpha1.ConditionAutoscalingActive) != nil {
		return len(owners) == 0 || slices.ContainsFunc(owners, hasScaled)
	}
	foreign := func(o fieldowners.Owner) bool { return !hasScaled(o) || o.Manager != autoscalerManager }
	return len(owners) > 0 && !slices.ContainsFunc(owners, foreign)
}
