package app

import (
	"encoding/json"
	"fmt"
	"maps"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
)

// Labels that every child carries. Selectors use the first two, which never change.
const (
	LabelName      = "app.kubernetes.io/name"
	LabelInstance  = "app.kubernetes.io/instance"
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedBy is the value of LabelManagedBy, by which the operator's cache selects.
	ManagedBy = "quell"
)

// selectorLabels select the Pods of an App.
func selectorLabels(app *quellv1alpha1.App) map[string]string { return appLabels(app.Name) }

// appLabels select the Pods of the App of a name.
func appLabels(name string) map[string]string {
	return map[string]string{LabelName: name, LabelInstance: name}
}

// childLabels are labels of the children and of the Pods: the App's common labels, and ours over them.
func childLabels(app *quellv1alpha1.App) map[string]string {
	labels := maps.Clone(app.Spec.CommonLabels)
	if labels == nil {
		labels = map[string]string{}
	}
	delete(labels, LabelShard) // an App's common labels cannot move its children
	maps.Copy(labels, selectorLabels(app))
	labels[LabelManagedBy] = ManagedBy
	return labels
}

// objectLabels are the labels of a child: those of the Pods, and the App's shard. That is no label of Pods, for a move to another
// shard would replace them.
func objectLabels(app *quellv1alpha1.App) map[string]string {
	labels := childLabels(app)
	if shard := app.Labels[LabelShard]; shard != "" {
		labels[LabelShard] = shard
	}
	return labels
}

// childMetadata is the metadata of a child: what is common to all, the annotations that the App has for this one, and the owner.
func childMetadata(app *quellv1alpha1.App, name string, annotations map[string]string) *metav1ac.ObjectMetaApplyConfiguration {
	return metav1ac.ObjectMeta().
		WithName(name).
		WithNamespace(app.Namespace).
		WithLabels(objectLabels(app)).
		WithAnnotations(app.Spec.CommonAnnotations).
		WithAnnotations(annotations).
		WithOwnerReferences(ownerReference(app))
}

func ownerReference(app *quellv1alpha1.App) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(quellv1alpha1.SchemeGroupVersion.String()).
		WithKind("App").
		WithName(app.Name).
		WithUID(app.UID).
		WithController(true).
		WithBlockOwnerDeletion(true)
}

// as turns a value of an API type into its apply configuration. Both have the same JSON form, and the types that App embeds
// omit what is not set, so nothing becomes a claim that the user did not make.
func as[T any](value any) (*T, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", value, err)
	}
	into := new(T)
	if err := json.Unmarshal(raw, into); err != nil {
		return nil, fmt.Errorf("convert %T to %T: %w", value, into, err)
	}
	return into, nil
}
