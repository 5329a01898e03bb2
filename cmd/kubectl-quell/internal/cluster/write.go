package cluster

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"
)

// Get reads an object anew; the error is the API server's.
func Get(info *resource.Info, subresource string) (*unstructured.Unstructured, error) {
	return asUnstructured(resource.NewHelper(info.Client, info.Mapping).WithSubresource(subresource).Get(info.Namespace, info.Name))
}

// Apply is a server-side apply.
type Apply struct {
	Manager, Subresource string
	Force                bool
}

// DryRun asks the API server what an apply of this document would lead to. Nothing is stored.
func (a Apply) DryRun(info *resource.Info, document *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	raw, err := document.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", Ref(document), err)
	}
	helper := resource.NewHelper(info.Client, info.Mapping).DryRun(true).WithFieldManager(a.Manager).WithSubresource(a.Subresource)
	return asUnstructured(helper.Patch(info.Namespace, info.Name, types.ApplyPatchType, raw, &metav1.PatchOptions{Force: &a.Force}))
}

// JSONPatch sends a JSON patch, as a dry run or in earnest.
func JSONPatch(info *resource.Info, patch []byte, dryRun bool) (*unstructured.Unstructured, error) {
	helper := resource.NewHelper(info.Client, info.Mapping).DryRun(dryRun).WithFieldManager("kubectl-quell")
	return asUnstructured(helper.Patch(info.Namespace, info.Name, types.JSONPatchType, patch, nil))
}

func asUnstructured(o runtime.Object, err error) (*unstructured.Unstructured, error) {
	if err != nil {
		return nil, err
	}
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("the API server answered with %T", o)
	}
	return u, nil
}
