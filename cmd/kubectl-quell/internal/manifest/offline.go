package manifest

import (
	"fmt"
	"os"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/cluster"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/kubernetes/scheme"
)

// readStored reads the live objects of an offline run.
func (o *conflictOptions) readStored() error {
	if !o.offline {
		return nil
	}
	o.stored = map[show.ObjectRef]*unstructured.Unstructured{}
	stored := cluster.Selection{Files: resource.FilenameOptions{Filenames: o.live}}
	return stored.Manifests(o.frame, true, func(live cluster.Object) error { // none at all is what a failed kubectl get leaves
		o.stored[identity(live.Unstructured)] = live.Unstructured
		return nil
	})
}

// identity names an object independently of its state and version; a manifest may leave the namespace to the command line.
func identity(u *unstructured.Unstructured) show.ObjectRef {
	return show.ObjectRef{APIVersion: u.GroupVersionKind().Group, Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}

// liveOf is the object as it is, or nil when there is none.
func (o *conflictOptions) liveOf(document cluster.Object) (*unstructured.Unstructured, error) {
	if !o.offline {
		return read(document)
	}
	if document.GetNamespace() == "" {
		document.Unstructured = document.DeepCopy()
		for id := range o.stored {
			if id.Kind == document.GetKind() && id.Name == document.GetName() && id.APIVersion == document.GroupVersionKind().Group {
				document.SetNamespace(id.Namespace)
			}
		}
	}
	live := o.stored[identity(document.Unstructured)]
	if live != nil && live.GetAPIVersion() != document.GetAPIVersion() {
		return nil, fmt.Errorf("%s is in %s in the manifest and in %s in the live file: get it in the same version", cluster.Ref(live), document.GetAPIVersion(), live.GetAPIVersion())
	}
	return live, nil
}

// types are the merge rules of a kind: of the schema file, else built in, else deduced, in which lists are atomic.
func (o *conflictOptions) types(gvk schema.GroupVersionKind) (managedfields.TypeConverter, error) {
	if o.schema == "" {
		if types, found := cluster.BuiltIn(gvk); found {
			return types, nil
		}
		return managedfields.NewDeducedTypeConverter(), nil
	}
	raw, err := os.ReadFile(o.schema)
	if err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	types, err := cluster.ParseSchema(raw)
	if err != nil {
		return nil, fmt.Errorf("read the schema %s: %w", o.schema, err)
	}
	return types, nil
}

// merge applies a document to a live object in the API server's way, with its own code.
func (o *conflictOptions) merge(live, document *unstructured.Unstructured, a cluster.Apply) (*unstructured.Unstructured, error) {
	gvk := document.GroupVersionKind()
	types, err := o.types(gvk)
	if err != nil {
		return nil, err
	}
	s := sameVersion{scheme.Scheme, gvk}
	manager, err := managedfields.NewDefaultCRDFieldManager(types, s, s, s, gvk, gvk.GroupVersion(), a.Subresource, nil)
	if err != nil {
		return nil, err
	}
	merged, err := manager.Apply(live.DeepCopy(), document, a.Manager, a.Force)
	if err != nil {
		return nil, err
	}
	u, ok := merged.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("the merge made a %T", merged)
	}
	return u, nil
}

// sameVersion is a world with one version and no defaults; entries in other versions are left aside in it, as the API
// server does with versions that it does not know.
type sameVersion struct {
	runtime.ObjectConvertor
	gvk schema.GroupVersionKind
}

// ConvertToVersion gives the object back for its own version.
func (s sameVersion) ConvertToVersion(o runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	if _, ok := target.KindForGroupVersionKinds([]schema.GroupVersionKind{s.gvk}); !ok {
		return nil, runtime.NewNotRegisteredGVKErrForTarget("offline", s.gvk, target)
	}
	return o, nil
}

// Default sets nothing.
func (sameVersion) Default(runtime.Object) {}

// New makes an empty object.
func (s sameVersion) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u, nil
}
