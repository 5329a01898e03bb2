package fieldowners_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/hduolab/quell/controller/fieldowners"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FuzzConflicts words a conflict as the API server does and reads it back, and reads any other message without harm.
func FuzzConflicts(f *testing.F) {
	f.Add("kubectl", "", "apps/v1", ".spec.replicas", "conflict with \"x\"")
	f.Add(`an "odd" \ name`, "scale", "", `.spec.list[name="a]b"]`, `conflict with "`)
	f.Add("", "status", "v1", "", `conflict with "a" with subresource "b" using`)
	f.Fuzz(func(t *testing.T, manager, subresource, version, path, message string) {
		text := "conflict with " + strconv.Quote(manager)
		if subresource != "" {
			text += " with subresource " + strconv.Quote(subresource)
		}
		want := fieldowners.Conflict{Path: path, Owner: fieldowners.Owner{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, Subresource: subresource}}
		if isWord(version) {
			text += fmt.Sprintf(" using %s at 2026-01-01T00:00:00Z", version)
			want.Operation, want.APIVersion = metav1.ManagedFieldsOperationUpdate, version
		}
		found := fieldowners.Conflicts(conflictOf(path, text))
		if len(found) != 1 || found[0] != want && strconv.Quote(manager) == `"`+manager+`"` {
			t.Errorf("%s is read as %+v, want %+v", text, found, want)
		}
		if found := fieldowners.Conflicts(conflictOf(path, message)); len(found) != 1 || found[0].Path != path {
			t.Errorf("%s is read as %+v", message, found)
		}
	})
}

func isWord(s string) bool {
	for _, r := range s {
		if r <= ' ' || r > '~' {
			return false
		}
	}
	return s != ""
}

func conflictOf(path, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
		{Type: metav1.CauseTypeFieldManagerConflict, Field: path, Message: message},
	}}}}
}
