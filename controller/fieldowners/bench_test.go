package fieldowners_test

import (
	"testing"

	"github.com/hduolab/quell/controller/fieldowners"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BenchmarkParse reads the managedFields of a Deployment as the API server writes them.
func BenchmarkParse(b *testing.B) {
	applied := `{"f:metadata":{"f:labels":{"f:app.kubernetes.io/instance":{},"f:app.kubernetes.io/managed-by":{},"f:app.kubernetes.io/name":{}},` +
		`"f:ownerReferences":{"k:{\"uid\":\"6f0c4a86-2f6f-4f0e-9a53-0b1f9f0f8d55\"}":{}}},"f:spec":{"f:replicas":{},"f:selector":{},"f:strategy":{"f:type":{}},` +
		`"f:template":{"f:metadata":{"f:labels":{"f:app.kubernetes.io/name":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:image":{},"f:name":{},` +
		`"f:ports":{"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:name":{},"f:protocol":{}}}}}}}}}`
	status := `{"f:status":{"f:availableReplicas":{},"f:conditions":{".":{},"k:{\"type\":\"Available\"}":{".":{},"f:lastTransitionTime":{},"f:lastUpdateTime":{},` +
		`"f:message":{},"f:reason":{},"f:status":{},"f:type":{}}},"f:observedGeneration":{},"f:readyReplicas":{},"f:replicas":{},"f:updatedReplicas":{}}}`
	managed := []metav1.ManagedFieldsEntry{
		{Manager: "operator", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(applied)},
		{Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v1", Subresource: "status", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(status)},
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, e := range fieldowners.Parse(managed) {
			if e.Unknown != nil || e.Fields.Empty() {
				b.Fatal(e.Unknown)
			}
		}
	}
}
