package eventfilter

import (
	"fmt"
	"slices"

	"github.com/hduolab/quell/controller/fieldowners"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"k8s.io/apimachinery/pkg/api/equality"
)

// Asked passes updates in which something that people ask for changed: generation, labels, annotations, finalizers, owner
// references or the start of deletion; creation, deletion and resync pass too.
//
// It drops every write of status alone, also a foreign one: what somebody else does to the status is healed only by the
// next event that passes or the resync. Use OwnWrites where that is too late.
func Asked() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld == nil || e.ObjectNew == nil ||
			e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() || !sameMetadata(e.ObjectOld, e.ObjectNew)
	}}
}

// Projected passes updates in which what project returns changed; creation, deletion and resync pass too. project takes the
// part of an object that the operator reads or applies, as a value that equality.Semantic can compare: no unexported fields
// and no functions, which make it panic. It is called with objects of the watched type only.
//
// It drops every other change. What the projection leaves out is seen at the next event that passes or the resync, so it
// has to hold whatever decides about a write. For a child that is applied: its generation, labels, annotations and owner
// references (of a kind without generation its spec), the fields that the applier owns (OwnedFields), so that a lost field is
// repaired, and where its rules leave fields to others or report them, those that these own (ForeignFields), so that the end of it is
// seen.
func Projected[T client.Object](project func(T) any) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		older, ok := e.ObjectOld.(T)
		newer, alsoOK := e.ObjectNew.(T)
		return !ok || !alsoOK || older.GetResourceVersion() == newer.GetResourceVersion() ||
			!equality.Semantic.DeepEqual(project(older), project(newer))
	}}
}

// OwnedFields is the raw field set that a manager owns by apply through a subresource, "" when it owns nothing. It is made
// for comparison in a projection.
func OwnedFields(o client.Object, manager, subresource string) string {
	own := OwnWrites{Manager: manager, Subresource: subresource}
	for _, e := range o.GetManagedFields() {
		if own.own(e) && e.FieldsV1 != nil {
			return e.FieldsV1.GetRawString()
		}
	}
	return ""
}

// ForeignFields tells what others than a manager own of an object, its status left out: the same for the same owners and fields,
// whatever the order and the times of their writes. It is made for comparison in a projection.
func ForeignFields(o client.Object, manager string) []string {
	var list []string
	for _, e := range o.GetManagedFields() {
		if e.Subresource != "status" && e.Manager != manager && e.FieldsV1 != nil {
			list = append(list, fmt.Sprintf("%s %s", fieldowners.OwnerOf(&e), e.FieldsV1.GetRawString()))
		}
	}
	slices.Sort(list)
	return list
}
