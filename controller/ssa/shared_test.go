package ssa

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestIsSharedCondition(t *testing.T) {
	const ready = `{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{"f:message":{}}}}}`
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, subresource string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: operation, Subresource: subresource, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(ready),
		}
	}
	ours := entry("me", metav1.ManagedFieldsOperationApply, "status")
	for name, c := range map[string]struct {
		entries   []metav1.ManagedFieldsEntry
		condition string
		want      bool
	}{
		"ours alone":              {[]metav1.ManagedFieldsEntry{ours}, "Ready", false},
		"another manager's":       {[]metav1.ManagedFieldsEntry{ours, entry("other", metav1.ManagedFieldsOperationUpdate, "status")}, "Ready", true},
		"ours by an update":       {[]metav1.ManagedFieldsEntry{ours, entry("me", metav1.ManagedFieldsOperationUpdate, "status")}, "Ready", true},
		"ours through the object": {[]metav1.ManagedFieldsEntry{ours, entry("me", metav1.ManagedFieldsOperationApply, "")}, "Ready", true},
		"another condition":       {[]metav1.ManagedFieldsEntry{entry("other", metav1.ManagedFieldsOperationUpdate, "status")}, "Stalled", false},
		"nobody's":                {nil, "Ready", false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ManagedFields: c.entries}}
			if got := IsSharedCondition(pod, "me", c.condition); got != c.want {
				t.Errorf("shared is %t, want %t", got, c.want)
			}
		})
	}
}
