package app

import (
	"context"
	"fmt"
	"strings"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/eventfilter"
	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/hduolab/quell/controller/ssa"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// child is one object that an App has or should have.
type child struct {
	kind string
	name string
	// desired is nil when the App does not want this child.
	desired runtime.ApplyConfiguration
	// live is nil when the child does not exist.
	live client.Object
	// invalid says why desired could not be built.
	invalid error
}

// applied is what became of one child.
type applied struct {
	child
	ssa.Result
	// err is the API server's refusal, or a request whose fate is unknown.
	err error
	// foreign says whose the live object is when it is not the App's.
	foreign string
	// leaving tells that an earlier object of this name is still being deleted.
	leaving bool
}

// current is the App's child as it is now, nil when it does not exist or is not the App's.
func (a applied) current() client.Object {
	switch {
	case a.foreign != "", a.leaving, a.Outcome == ssa.Gone:
		return nil
	case a.Object != nil:
		return a.Object
	}
	return a.live
}

// desiredChildren are the children in the order in which they are applied.
func desiredChildren(seen observed) []child {
	children := make([]child, len(kinds))
	for i, k := range kinds {
		children[i] = child{kind: k.name, name: k.childName(seen.app), live: seen.live[k.name]}
		if k.wanted(seen.app) {
			children[i].desired, children[i].invalid = k.desired(seen)
		}
	}
	return children
}

// applyChildren brings each child to its desired state. One that fails does not keep the others from it. Nothing is applied
// for an App that is being deleted: its children go with it through their owner references.
func (r *Reconciler) applyChildren(ctx context.Context, seen observed) []applied {
	if deletionPending(seen.app) {
		return nil
	}
	var results []applied
	for _, c := range desiredChildren(seen) {
		results = append(results, r.applyChild(ctx, seen.app, c))
	}
	return results
}

func (r *Reconciler) applyChild(ctx context.Context, app *quellv1alpha1.App, c child) applied {
	a := applied{child: c, err: c.invalid}
	switch {
	case c.invalid != nil:
	case c.live != nil && !isOurs(c.live, app):
		if c.desired != nil {
			a.leaving, a.foreign = isLeaving(c.live, app), whose(c.live)
		}
	case c.live != nil && c.live.GetDeletionTimestamp() != nil:
		a.leaving = true
	case c.desired != nil:
		a.Result, a.err = r.children.Apply(ctx, ssa.Intent{
			Desired: c.desired, Live: c.live, Inputs: ssa.Generation(app), Unforced: unforced(app) || c.live == nil,
		})
	case c.live != nil:
		a.Outcome, a.err = ssa.Gone, r.remove(ctx, c.live)
	}
	if apierrors.HasStatusCause(a.err, corev1.NamespaceTerminatingCause) {
		a.leaving, a.err = true, nil
	}
	return a
}

func unforced(app *quellv1alpha1.App) bool {
	return app.Spec.ConflictPolicy != nil && app.Spec.ConflictPolicy.Mode == quellv1alpha1.ConflictReport
}

// remove deletes a child that the App does not want any more, if it still is what was seen; else the next look decides.
func (r *Reconciler) remove(ctx context.Context, live client.Object) error {
	uid, version := live.GetUID(), live.GetResourceVersion()
	err := r.Client.Delete(ctx, live, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// isOurs reports whether a live object is the App's: it is controlled by the App, or is an orphan of an App of this name.
func isOurs(live client.Object, app *quellv1alpha1.App) bool {
	return metav1.IsControlledBy(live, app) || isOrphan(live)
}

// isOrphan reports whether the operator made a live object that has no controller now: somebody removed its owner reference,
// or its App was deleted with --cascade=orphan.
func isOrphan(live client.Object) bool {
	return metav1.GetControllerOf(live) == nil && eventfilter.OwnedFields(live, ChildManager, "") != ""
}

// isLeaving reports whether a live object is on its way out: it is being deleted, or belonged to an earlier App of this name.
func isLeaving(live client.Object, app *quellv1alpha1.App) bool {
	owner := metav1.GetControllerOf(live)
	return live.GetDeletionTimestamp() != nil ||
		owner != nil && owner.Kind == "App" && owner.Name == app.Name && strings.HasPrefix(owner.APIVersion, quellv1alpha1.SchemeGroupVersion.Group+"/")
}

// whose names the owner of an object that is not the App's, in words that do not change by themselves.
func whose(live client.Object) string {
	if owner := metav1.GetControllerOf(live); owner != nil {
		return fmt.Sprintf("it belongs to %s %q", owner.Kind, owner.Name)
	}
	for _, e := range live.GetManagedFields() {
		if e.Subresource == "" {
			return fmt.Sprintf("it was written by field manager %s", fieldowners.OwnerOf(&e))
		}
	}
	return "it has no owner"
}
