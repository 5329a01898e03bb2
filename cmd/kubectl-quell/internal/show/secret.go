package show

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Mask stands for a value that is not to be seen.
const Mask = "***"

// MaskSecret gives a Secret without its data, also where client-side kubectl apply keeps a copy of them, and any other
// object as it is. The given object is not changed.
func MaskSecret(u *unstructured.Unstructured) *unstructured.Unstructured {
	if u.GetKind() != "Secret" || u.GroupVersionKind().Group != corev1.GroupName {
		return u
	}
	object := maps.Clone(u.Object)
	maskAll(object, "data")
	maskAll(object, "stringData")
	if metadata, ok := object["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		object["metadata"] = metadata
		if annotations, ok := metadata["annotations"].(map[string]any); ok {
			annotations = maps.Clone(annotations)
			metadata["annotations"] = annotations
			if _, found := annotations[corev1.LastAppliedConfigAnnotation]; found {
				annotations[corev1.LastAppliedConfigAnnotation] = Mask
			}
		}
	}
	return &unstructured.Unstructured{Object: object}
}

// maskAll masks the values of a map, or whatever else is in its place.
func maskAll(object map[string]any, field string) {
	values, isMap := object[field].(map[string]any)
	if !isMap {
		if object[field] != nil {
			object[field] = Mask
		}
		return
	}
	values = maps.Clone(values)
	for key := range values {
		values[key] = Mask
	}
	object[field] = values
}
