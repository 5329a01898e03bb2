package app

import (
	"context"
	"fmt"
	"slices"
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
	// wanted tells whether the App asks for this child.
	wanted bool
	// desired is nil when it does not, or when it could not be built.
	desired runtime.ApplyConfiguration
	// live is nil when the child does not exist.
	live client.Object
	// invalid says why desired could not be built.
	invalid error
	// rules say what happens to fields that others hold.
	rules ssa.Rules
	// tentative tells that what it was decided from must be read past the cache before anything is written.
	tentative bool
	// zeroed is the rule for a scale to zero by an unknown writer, "" when there was none.
	zeroed ssa.Rule
	// uncontested tells that to take the number of Pods is no conflict.
	uncontested bool
	// stalled and moving are known to be in the way before anything is applied.
	stalled, moving *finding
}

// applied is what became of one child.
type applied struct {
	child
	ssa.Result
	// err is the API server's refusal, or a request whose fate is unknown.
	err error
	// foreign says whose the live object is when it is not the App's.
	foreign string
	// adoption says what can be done about a foreign object.
	adoption string
	// adopts tells that the live object was offered to the App.
	adopts bool
	// leaving tells that an earlier object of this name is still being deleted or, without one, that the namespace is.
	leaving bool
	// pending tells that spec.suspend holds something back; Reasons say what, where the child exists.
	pending bool
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

// desiredChild is what the App wants of one kind.
func desiredChild(seen observed, k kind) child {
	if k.name == kindDeployment {
		verdict := replicas(seen)
		seen.verdict = &verdict
	}
	c := child{
		kind: k.name, name: k.childName(seen.app), wanted: k.wanted(seen.app), live: seen.live[k.name],
		invalid: leftRoute(seen, k.name), tentative: isTentative(k, seen),
	}
	if c.wanted {
		c.desired, c.invalid = k.desired(seen)
		if rules, err := conflictRules(seen, k.name); c.invalid == nil {
			c.rules, c.invalid = rules, err
		}
	}
	if k.name == kindDeployment {
		c.stalled, c.moving = seen.configStalled, seen.configMoving
		c.uncontested, c.zeroed = seen.count().uncontested, zeroed(seen)
	}
	return c
}

// desiredChildren are the children in the order in which they are applied.
func desiredChildren(seen observed) []child {
	children := make([]child, len(kinds))
	for i, k := range kinds {
		children[i] = desiredChild(seen, k)
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
	for i, c := range desiredChildren(seen) {
		a := r.applyChild(ctx, seen.app, c)
		if a.isOutdated() {
			a = r.applyAgain(ctx, seen, kinds[i], a)
		}
		results = append(results, a)
	}
	return append(results, r.removeFormer(ctx, seen)...)
}

func (r *Reconciler) applyChild(ctx context.Context, app *quellv1alpha1.App, c child) applied {
	a := applied{child: c, err: c.invalid}
	switch {
	case c.live != nil && !isOurs(c.live, app):
		return r.leaveAlone(ctx, app, a)
	case c.live != nil && !c.wanted && !isRemovable(c.live, app):
		a.live = nil
	case isSuspended(app):
		return r.holdBack(ctx, a)
	case c.invalid != nil, c.desired != nil && c.live == nil && c.moving != nil:
	case c.live != nil && c.live.GetDeletionTimestamp() != nil:
		a.leaving = true
	case c.desired != nil && c.zeroed == ssa.Report:
		a.Outcome, a.Conflicts = ssa.Conflicted, []fieldowners.Conflict{{Path: replicasField}}
	case c.desired != nil:
		a.adopts = c.live != nil && isOffered(c.live, app)
		a.Result, a.err = r.children.Apply(ctx, ssa.Intent{
			Desired: c.desired, Live: c.live, Inputs: ssa.Generation(app), Rules: c.rules,
			Exact: kindNamed(c.kind).exact, Tentative: c.tentative,
		})
		a = a.withoutHandover()
	case c.live != nil && c.tentative:
		a.Outcome = ssa.Stale
	case c.live != nil:
		a.Outcome, a.err = ssa.Gone, r.remove(ctx, c.live)
	}
	if apierrors.HasStatusCause(a.err, corev1.NamespaceTerminatingCause) {
		a.leaving, a.err = true, nil
	}
	a.err = unserved(c.kind, a.err)
	return a
}

// leaveAlone says whose an object is that has the name of a child that the App wants; any other is of no concern.
func (r *Reconciler) leaveAlone(ctx context.Context, app *quellv1alpha1.App, a applied) applied {
	switch {
	case !a.wanted:
		a.live = nil
	case isSuspended(app):
		a.foreign, a.pending, a.err = whose(a.live), true, nil
	case isLeaving(a.live, app):
		a.leaving = true
	default:
		a.foreign, a.adoption = whose(a.live), r.adoption(ctx, app, a.child)
	}
	return a
}

// isOurs reports whether a live object is the App's, or is the App's to take: an orphan of an App of this name, or one that was
// offered.
func isOurs(live client.Object, app *quellv1alpha1.App) bool {
	return isMade(live, app) || isOffered(live, app)
}

// isMade reports whether a live object was made, or adopted before, by this App or an earlier one of its name.
func isMade(live client.Object, app *quellv1alpha1.App) bool {
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

// finalizers says for whom a live object waits that is being deleted.
func finalizers(live client.Object) string {
	if live == nil || len(live.GetFinalizers()) == 0 {
		return ""
	}
	return ", which waits for its finalizers " + strings.Join(slices.Sorted(slices.Values(live.GetFinalizers())), ", ")
}

// whose names the owner of an object that is not the App's, in words that do not change by themselves.
func whose(live client.Object) string {
	if owner := metav1.GetControllerOf(live); owner != nil {
		return fmt.Sprintf("it belongs to %s %q", owner.Kind, owner.Name)
	}
	var writers []string
	for _, e := range live.GetManagedFields() {
		if e.Subresource == "" {
			writers = append(writers, fieldowners.OwnerOf(&e).String())
		}
	}
	if len(writers) == 0 {
		return "it has no owner"
	}
	return "it was written by field manager " + slices.Min(writers)
}
