package app

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
)

func TestLingering(t *testing.T) {
	const stalled = `{"f:status":{"f:conditions":{"k:{\"type\":\"Stalled\"}":{".":{},"f:type":{},"f:status":{}}}}}`
	const message = `{"f:status":{"f:conditions":{"k:{\"type\":\"Stalled\"}":{"f:message":{}}}}}`
	const other = `{"f:status":{"f:conditions":{"k:{\"type\":\"Other\"}":{".":{},"f:type":{}}}}}`
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: operation, Subresource: "status", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	ours := entry(statusManager, metav1.ManagedFieldsOperationApply, stalled)
	for name, c := range map[string]struct {
		conditions []string
		entries    []metav1.ManagedFieldsEntry
		want       []string
	}{
		"ours alone":                     {[]string{"Stalled"}, []metav1.ManagedFieldsEntry{ours}, nil},
		"written by somebody else too":   {[]string{"Stalled"}, []metav1.ManagedFieldsEntry{ours, entry("me", metav1.ManagedFieldsOperationUpdate, message)}, []string{"Stalled"}},
		"applied by somebody else alone": {[]string{"Stalled"}, []metav1.ManagedFieldsEntry{entry("me", metav1.ManagedFieldsOperationApply, stalled)}, []string{"Stalled"}},
		"booked before the first apply":  {[]string{"Stalled"}, []metav1.ManagedFieldsEntry{ours, entry("before-first-apply", metav1.ManagedFieldsOperationUpdate, stalled)}, []string{"Stalled"}},
		"under our name by an update":    {[]string{"Stalled"}, []metav1.ManagedFieldsEntry{ours, entry(statusManager, metav1.ManagedFieldsOperationUpdate, stalled)}, []string{"Stalled"}},
		"not there":                      {nil, []metav1.ManagedFieldsEntry{entry("me", metav1.ManagedFieldsOperationUpdate, stalled)}, nil},
		"another condition":              {[]string{"Other", "Stalled"}, []metav1.ManagedFieldsEntry{ours, entry("me", metav1.ManagedFieldsOperationUpdate, other)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			app := &quellv1alpha1.App{ObjectMeta: metav1.ObjectMeta{ManagedFields: c.entries}}
			for _, kind := range c.conditions {
				app.Status.Conditions = append(app.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue})
			}
			NewWithT(t).Expect(lingering(app)).To(Equal(c.want))
		})
	}
}
