package fieldowners_test

import (
	"fmt"

	"github.com/hduolab/quell/controller/fieldowners"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

func managed(manager, fields string) metav1.ManagedFieldsEntry {
	f := &metav1.FieldsV1{}
	f.SetRawString(fields)
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1", FieldsType: "FieldsV1", FieldsV1: f,
	}
}

func ExampleOwnersOf() {
	entries := fieldowners.Parse([]metav1.ManagedFieldsEntry{
		managed("argocd", `{"f:spec":{"f:replicas":{},"f:paused":{}}}`),
		managed("helm", `{"f:spec":{"f:replicas":{}}}`),
	})
	replicas := fieldpath.MakePathOrDie("spec", "replicas")
	fmt.Println(fieldowners.Join(fieldowners.OwnersOf(entries, replicas)))
	// Output: "argocd" (Apply), "helm" (Apply)
}

func ExampleFind() {
	entries := fieldowners.Parse([]metav1.ManagedFieldsEntry{managed("argocd", `{"f:spec":{"f:replicas":{}}}`)})
	mine, found := fieldowners.Find(entries, fieldowners.Owner{Manager: "argocd", Operation: metav1.ManagedFieldsOperationApply})
	fmt.Println(found, mine.Fields)
	// Output: true .spec.replicas
}

func ExampleDiff() {
	older := fieldowners.Parse([]metav1.ManagedFieldsEntry{managed("argocd", `{"f:spec":{"f:replicas":{}}}`)})
	newer := fieldowners.Parse([]metav1.ManagedFieldsEntry{managed("helm", `{"f:spec":{"f:replicas":{}}}`)})
	for _, m := range fieldowners.Diff(older, newer) {
		fmt.Printf("%s: from %s to %s\n", m.Path, fieldowners.Join(m.Lost), fieldowners.Join(m.Gained))
	}
	// Output: .spec.replicas: from "argocd" (Apply) to "helm" (Apply)
}

func ExampleConflicts() {
	err := apierrors.NewApplyConflict([]metav1.StatusCause{{
		Type:    metav1.CauseTypeFieldManagerConflict,
		Message: `conflict with "kubectl-edit" using apps/v1 at 2026-01-01T00:00:00Z`,
		Field:   ".spec.replicas",
	}}, "Apply failed with 1 conflict")
	for _, c := range fieldowners.Conflicts(err) {
		fmt.Printf("%s belongs to %s\n", c.Path, c.Owner)
	}
	// Output: .spec.replicas belongs to "kubectl-edit" (Update)
}

func ExampleParse() {
	entries := fieldowners.Parse([]metav1.ManagedFieldsEntry{
		managed("argocd", `{"f:spec":{"f:replicas":{}}}`),
		{Manager: "wiped", Operation: metav1.ManagedFieldsOperationUpdate},
	})
	for _, e := range entries {
		fmt.Println(e.Owner, e.Fields.Size(), e.Unknown)
	}
	// Output:
	// "argocd" (Apply) 1 <nil>
	// "wiped" (Update) 0 entry has no fieldsV1
}

func ExampleTyped() {
	types := applyconfigurations.NewTypeConverter(scheme.Scheme)
	live := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Paused: true}}
	tv, err := fieldowners.Typed(live, appsv1.SchemeGroupVersion.WithKind("Deployment"), types)
	if err != nil {
		fmt.Println(err)
		return
	}
	paused := fieldpath.MakePathOrDie("spec", "paused")
	fmt.Println(tv.ExtractItems(fieldpath.NewSet(paused)).AsValue().Unstructured())
	// Output: map[spec:map[paused:true]]
}

func ExampleJoin() {
	fmt.Println(fieldowners.Join([]fieldowners.Owner{{Manager: "helm"}, {Manager: "argocd", Subresource: "status"}}))
	// Output: "argocd" (status), "helm"
}
