package fieldowners

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// Object is any API object, typed or unstructured.
type Object interface {
	metav1.Object
	runtime.Object
}

// Typed gives an object the merge rules of its kind. A typed object from a cache lacks apiVersion and kind and must not be
// changed, so it is copied one level deep to carry them. Lists with duplicate keys, which a live object may have, are
// allowed. The error names the kind and the object.
func Typed(o Object, gvk schema.GroupVersionKind, types managedfields.TypeConverter) (*typed.TypedValue, error) {
	if u, ok := o.(runtime.Unstructured); ok {
		o = &unstructured.Unstructured{Object: u.UnstructuredContent()}
	} else {
		shallow := reflect.New(reflect.TypeOf(o).Elem())
		shallow.Elem().Set(reflect.ValueOf(o).Elem())
		o = shallow.Interface().(Object)
		o.GetObjectKind().SetGroupVersionKind(gvk)
	}
	tv, err := types.ObjectToTyped(o, typed.AllowDuplicates)
	if err != nil {
		return nil, fmt.Errorf("read live %s %q: %w", gvk.Kind, o.GetName(), err)
	}
	return tv, nil
}

// Structure is the set of all paths of an object by the merge rules of its kind, in which an atomic list or map is one
// path; see Attribute. The error, as that of Typed, is of an object that does not fit its schema.
func Structure(o Object, gvk schema.GroupVersionKind, types managedfields.TypeConverter) (*fieldpath.Set, error) {
	tv, err := Typed(o, gvk, types)
	if err != nil {
		return nil, err
	}
	paths, err := tv.ToFieldSet()
	if err != nil {
		return nil, fmt.Errorf("list the fields of %s %q: %w", gvk.Kind, o.GetName(), err)
	}
	return paths, nil
}
