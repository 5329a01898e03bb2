package ssa

import (
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

const transitionTime = "lastTransitionTime"

// carryTransitionTimes sets lastTransitionTime of each condition in status.conditions: the live one's while the status is the
// same, else now. What the caller put there is replaced, for a time of the call is the oldest way to storm.
func carryTransitionTimes(u *unstructured.Unstructured, live client.Object, now time.Time) error {
	conditions, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "conditions")
	list, ok := conditions.([]any)
	if !ok || len(list) == 0 {
		return nil
	}
	before, err := liveConditions(live)
	if err != nil {
		return err
	}
	for _, item := range list {
		condition, ok := item.(map[string]any)
		if !ok {
			continue
		}
		condition[transitionTime] = now.UTC().Format(time.RFC3339)
		old := before[fmt.Sprint(condition["type"])]
		if old[transitionTime] != nil && isSameStatus(old["status"], condition["status"]) {
			condition[transitionTime] = old[transitionTime]
		}
	}
	return nil
}

// isSameStatus compares the status of conditions. As in every comparison here, an empty one is the same as none.
func isSameStatus(a, b any) bool {
	isEmpty := func(v any) bool { return v == nil || v == "" }
	return isEmpty(a) && isEmpty(b) || reflect.DeepEqual(a, b)
}

// liveConditions are the conditions of a live object by type.
func liveConditions(live client.Object) (map[string]map[string]any, error) {
	if live == nil {
		return nil, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return nil, err
	}
	list, _, _ := unstructured.NestedFieldNoCopy(content, "status", "conditions")
	items, _ := list.([]any)
	byType := make(map[string]map[string]any, len(items))
	for _, item := range items {
		if condition, ok := item.(map[string]any); ok {
			byType[fmt.Sprint(condition["type"])] = condition
		}
	}
	return byType, nil
}

// isTransitionTime reports whether a path is that of the transition time of a condition in status.conditions.
func isTransitionTime(p fieldpath.Path) bool {
	isField := func(e fieldpath.PathElement, name string) bool { return e.FieldName != nil && *e.FieldName == name }
	return len(p) == 4 && isField(p[0], "status") && isField(p[1], "conditions") && isField(p[3], transitionTime)
}

// withoutTransitionTimes is object without the transition times of its conditions, which follow from the rest and from
// what was there before. object is not changed.
func withoutTransitionTimes(object any) any {
	root, _ := object.(map[string]any)
	status, _ := root["status"].(map[string]any)
	conditions, ok := status["conditions"].([]any)
	if !ok {
		return object
	}
	stripped := make([]any, len(conditions))
	for i, item := range conditions {
		stripped[i] = without(item, transitionTime)
	}
	return with(root, "status", with(status, "conditions", stripped))
}

func with(m map[string]any, key string, value any) map[string]any {
	c := make(map[string]any, len(m))
	for k, v := range m {
		c[k] = v
	}
	c[key] = value
	return c
}

func without(item any, key string) any {
	m, ok := item.(map[string]any)
	if !ok {
		return item
	}
	c := with(m, key, nil)
	delete(c, key)
	return c
}
