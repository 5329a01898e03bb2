package ssa

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var things = schema.GroupResource{Group: "example.com", Resource: "things"}

func TestIsTerminal(t *testing.T) {
	internal := func(text string) error { return apierrors.NewInternalError(errors.New(text)) }
	for _, test := range []struct {
		name string
		err  error
		want bool
	}{
		{"none", nil, false},
		{"our own word", Invalid("duplicate"), true},
		{"our own word, wrapped", fmt.Errorf("apply: %w", Invalid("duplicate")), true},
		{"invalid", apierrors.NewInvalid(schema.GroupKind{Kind: "Thing"}, "a", field.ErrorList{field.Required(field.NewPath("spec"), "")}), true},
		{"invalid, wrapped", fmt.Errorf("apply: %w", apierrors.NewInvalid(schema.GroupKind{Kind: "Thing"}, "a", nil)), true},
		{"bad request", apierrors.NewBadRequest("managedFields must be nil"), true},
		{"too large", apierrors.NewRequestEntityTooLargeError("3 MB"), true},
		{"method not supported", apierrors.NewMethodNotSupported(things, "patch"), true},
		{"500 for an unknown field", internal(".status.zzz: field not declared in schema"), true},
		{"500 for duplicates", internal(`failed to create typed patch object (/a; /v1): duplicate entries for key [type="Ready"]`), true},
		{"500 for an unserved version", internal("request to convert CR to an invalid group/version: example.com/v1beta1"), true},
		{"other 500", internal("etcd is gone"), false},
		{"the same words without a 500", errors.New("field not declared in schema"), false},
		{"conflict", apierrors.NewConflict(things, "a", errors.New("field not declared in schema")), false},
		{"forbidden", apierrors.NewForbidden(things, "a", errors.New("quota")), false},
		{"unauthorized", apierrors.NewUnauthorized("who"), false},
		{"not found", apierrors.NewNotFound(things, "a"), false},
		{"too many requests", apierrors.NewTooManyRequests("slow down", 1), false},
		{"timeout", apierrors.NewTimeoutError("late", 1), false},
		{"deadline", context.DeadlineExceeded, false},
	} {
		NewWithT(t).Expect(IsTerminal(test.err)).To(Equal(test.want), test.name)
	}
}

func TestIsOtherUID(t *testing.T) {
	kind := schema.GroupKind{Group: "example.com", Kind: "Thing"}
	for _, test := range []struct {
		name string
		err  error
		want bool
	}{
		{"no object", apierrors.NewConflict(things, "a", errors.New("uid mismatch: the provided object specified uid 1, and no existing object was found")), true},
		{"precondition", apierrors.NewConflict(things, "a", errors.New("Precondition failed: UID in precondition: 1, UID in object meta: 2")), true},
		{"another object", apierrors.NewInvalid(kind, "a", field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), "1", "field is immutable")}), true},
		{"the optimistic lock", apierrors.NewConflict(things, "a", errors.New("the object has been modified")), false},
		{"a value that may be metadata.uid", apierrors.NewInvalid(kind, "a", field.ErrorList{
			field.NotSupported(field.NewPath("spec", "fieldPath"), "x", []string{"metadata.uid"})}), false},
		{"an owner without uid", apierrors.NewInvalid(kind, "a", field.ErrorList{field.Required(field.NewPath("metadata", "ownerReferences").Index(0).Child("uid"), "")}), false},
	} {
		NewWithT(t).Expect(isOtherUID(test.err)).To(Equal(test.want), test.name)
	}
}

func TestIsNotFound(t *testing.T) {
	c := &call{content: &content{object: deployment(nil)}}
	generic := apierrors.NewGenericServerResponse(404, "patch", things, "web", "404 page not found", 0, true)
	for _, test := range []struct {
		name string
		err  error
		want bool
	}{
		{"the object", apierrors.NewNotFound(things, "web"), true},
		{"another object", apierrors.NewNotFound(things, "config"), false},
		{"the namespace of the same name", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "web"), false},
		{"the resource", generic, false},
		{"no 404", apierrors.NewBadRequest("web"), false},
		{"a 404 without details", &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonNotFound, Code: 404}}, false},
	} {
		NewWithT(t).Expect(c.isNotFound(test.err)).To(Equal(test.want), test.name)
	}
}

func TestResultSaysWhatItCost(t *testing.T) {
	for name, test := range map[string]struct {
		result      Result
		wrote, held bool
	}{
		"unchanged":             {Result{Outcome: Unchanged}, false, false},
		"unchanged but taken":   {Result{Outcome: Unchanged, Migrated: true}, true, false},
		"applied":               {Result{Outcome: Applied, Sent: true}, true, false},
		"no-op":                 {Result{Outcome: NoOp, Sent: true}, false, false},
		"does not stick, sent":  {Result{Outcome: DoesNotStick, Sent: true}, true, false},
		"does not stick, known": {Result{Outcome: DoesNotStick}, false, false},
		"contended":             {Result{Outcome: Contended, RetryAfter: time.Second}, false, true},
	} {
		NewWithT(t).Expect(test.result.Wrote()).To(Equal(test.wrote), name)
		NewWithT(t).Expect(test.result.Held()).To(Equal(test.held), name)
	}
}
