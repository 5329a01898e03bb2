package eventfilter

import (
	"slices"

	"github.com/hduolab/quell/controller/fieldowners"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// OwnWrites tells the writes of one field manager on one subresource from everybody else's.
type OwnWrites struct {
	// Manager and Subresource identify the applier whose writes are dropped.
	Manager, Subresource string
	// Types gives the kinds their merge rules, as for ssa.Options.
	Types managedfields.TypeConverter
	// Scheme knows the kinds.
	Scheme *runtime.Scheme
}

// Dropped drops update events in which nothing changed outside the fields that the manager owns through the subresource.
// Everything else passes: a change of generation, labels, annotations, finalizers, owners or deletion, a foreign write to
// any field, a foreign write that takes or removes a field of ours, creation, deletion and resync.
//
// What it drops needs no healing while one process at a time writes an object under this manager, as leader election sees to, and that
// process looks again after a write that failed, as ssa.StatusWriter makes it: it is what we wrote. It cannot tell a removal
// of our field by somebody else from our own when a relist merges it with a later write of ours; the resync heals that.
// If in doubt otherwise it passes the event: that costs one reconcile without a request. The cache must keep managedFields;
// without them every event passes.
func (o OwnWrites) Dropped() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld == nil || e.ObjectNew == nil || !o.only(e.ObjectOld, e.ObjectNew)
	}}
}

// only reports whether the step from one version to the next can be nothing but writes of our own.
func (o OwnWrites) only(older, newer client.Object) bool {
	if older.GetResourceVersion() == newer.GetResourceVersion() || !sameMetadata(older, newer) || !o.sameForeign(older, newer) {
		return false
	}
	was, _ := o.entry(older)
	is, ok := o.entry(newer)
	if !ok || lostWithoutWriting(was, is) {
		return false
	}
	changed, err := o.changed(older, newer)
	return err == nil && changed.Difference(was.Fields).Difference(is.Fields).Empty()
}

// sameForeign reports whether all managedFields entries but ours are the same.
func (o OwnWrites) sameForeign(older, newer client.Object) bool {
	foreign := func(c client.Object) []metav1.ManagedFieldsEntry {
		return slices.DeleteFunc(slices.Clone(c.GetManagedFields()), o.own)
	}
	return slices.EqualFunc(foreign(older), foreign(newer), func(a, b metav1.ManagedFieldsEntry) bool {
		return equality.Semantic.DeepEqual(a, b)
	})
}

func (o OwnWrites) own(e metav1.ManagedFieldsEntry) bool {
	return e.Manager == o.Manager && e.Subresource == o.Subresource && e.Operation == metav1.ManagedFieldsOperationApply
}

// entry is our own entry, with an empty field set when there is none.
func (o OwnWrites) entry(c client.Object) (fieldowners.Entry, bool) {
	for _, e := range c.GetManagedFields() {
		if o.own(e) {
			return fieldowners.Parse([]metav1.ManagedFieldsEntry{e})[0], true
		}
	}
	return fieldowners.Entry{Fields: fieldpath.NewSet()}, false
}

// lostWithoutWriting reports whether we lost fields although our entry is not newer: somebody removed them, which leaves no
// entry of that writer.
func lostWithoutWriting(was, is fieldowners.Entry) bool {
	newer := is.Time != nil && (was.Time == nil || is.Time.After(was.Time.Time))
	return !newer && !was.Fields.Difference(is.Fields).Empty()
}

func (o OwnWrites) changed(older, newer client.Object) (*fieldpath.Set, error) {
	gvk, err := apiutil.GVKForObject(newer, o.Scheme)
	if err != nil {
		return nil, err
	}
	was, err := fieldowners.Typed(older, gvk, o.Types)
	if err != nil {
		return nil, err
	}
	is, err := fieldowners.Typed(newer, gvk, o.Types)
	if err != nil {
		return nil, err
	}
	comparison, err := was.Compare(is)
	if err != nil {
		return nil, err
	}
	all := comparison.Added.Union(comparison.Modified).Union(comparison.Removed)
	return all.RecursiveDifference(metadata).Leaves(), nil
}

// metadata is compared by sameMetadata; what is left of it moves with each write.
var metadata = fieldpath.NewSet(fieldpath.MakePathOrDie("metadata"))

func sameMetadata(a, b client.Object) bool {
	return a.GetUID() == b.GetUID() && a.GetGeneration() == b.GetGeneration() &&
		a.GetDeletionTimestamp().Equal(b.GetDeletionTimestamp()) &&
		equality.Semantic.DeepEqual(a.GetLabels(), b.GetLabels()) &&
		equality.Semantic.DeepEqual(a.GetAnnotations(), b.GetAnnotations()) &&
		equality.Semantic.DeepEqual(a.GetFinalizers(), b.GetFinalizers()) &&
		equality.Semantic.DeepEqual(a.GetOwnerReferences(), b.GetOwnerReferences())
}
