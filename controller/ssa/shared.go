package ssa

import (
	"slices"

	"github.com/hduolab/quell/controller/fieldowners"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// IsSharedCondition reports whether anybody but the applier of an object's status under fieldManager owns a part of the condition of
// that type in status.conditions: a person wrote to it, or managedFields were wiped and the API server books it on
// "before-first-apply". Such a condition stays as it is when the applier leaves it out, and has to be denied in words.
func IsSharedCondition(object metav1.Object, fieldManager, condition string) bool {
	path := []fieldpath.Path{fieldpath.MakePathOrDie("status", "conditions", fieldpath.KeyByFields("type", condition))}
	return slices.ContainsFunc(fieldowners.Parse(object.GetManagedFields()), func(e fieldowners.Entry) bool {
		if e.Manager == fieldManager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == "status" {
			return false
		}
		return !fieldowners.Below(e.Fields, path).Empty()
	})
}
