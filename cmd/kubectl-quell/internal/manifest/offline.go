package manifest

import (
	"fmt"
	"os"
	"slices"
	"strings"

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
	isTracked := false
	stored := cluster.Selection{Files: resource.FilenameOptions{Filenames: o.live}}
	err := stored.Manifests(o.frame, true, func(live cluster.Object) error { // none at all is what a failed kubectl get leaves
		o.stored[identity(live.Unstructured)] = live.Unstructured
		isTracked = isTracked || len(live.GetManagedFields()) > 0
		return nil
	})
	if err == nil && !isTracked {
		fmt.Fprintln(o.frame.ErrOut, "note: nothing in --live has managedFields: kubectl get -o yaml writes them with --show-managed-fields only")
	}
	if err != nil {
		return fmt.Errorf("read --live %s: %w", strings.Join(o.live, ","), err)
	}
	return nil
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
	id, err := o.identityOf(document.Unstructured)
	if err != nil {
		return nil, err
	}
	live := o.stored[id]
	if live != nil && live.GetAPIVersion() != document.GetAPIVersion() {
		return nil, fmt.Errorf("%s is in %s in the manifest and in %s in the live file: get it in the same version", cluster.Ref(live), document.GetAPIVersion(), live.GetAPIVersion())
	}
	return live, nil
}

// identityOf is where a document would go. One without a namespace goes to that of -n, else to where the live file has the
// only object of its name.
func (o *conflictOptions) identityOf(document *unstructured.Unstructured) (show.ObjectRef, error) {
	id := identity(document)
	if id.Namespace != "" {
		return id, nil
	}
	var namespaces []string
	for s := range o.stored {
		if s.Kind == id.Kind && s.Name == id.Name && s.APIVersion == id.APIVersion {
			namespaces = append(namespaces, s.Namespace)
		}
	}
	slices.Sort(namespaces)
	wanted := *o.frame.Config.Namespace
	switch {
	case slices.Contains(namespaces, ""): // of no namespace
	case wanted != "":
		id.Namespace = wanted
	case len(namespaces) > 1:
		return id, fmt.Errorf("%s is in the namespaces %s of the live file: choose one with -n",
			cluster.Ref(document), strings.Join(namespaces, ", "))
	case len(namespaces) == 1:
		id.Namespace = namespaces[0]
	}
	return id, nil
}

// types are the merge rules of a kind: of the schema file, else built in, else, without a schema file, deduced, in which lists
// are atomic.
func (o *conflictOptions) types(gvk schema.GroupVersionKind) (managedfields.TypeConverter, error) {
	builtIn, isBuiltIn := cluster.BuiltIn(gvk)
	if o.schema == "" && isBuiltIn {
		return builtIn, nil
	}
	if o.schema == "" {
		if !o.guessed[gvk] {
			o.guessed[gvk] = true
			fmt.Fprintf(o.frame.ErrOut, "note: the schema of %s is not known, so its lists are taken for atomic, and conflicts in their items are not seen: give it with --schema\n",
				show.Escape(gvk.Kind+" of "+gvk.GroupVersion().String()))
		}
		return managedfields.NewDeducedTypeConverter(), nil
	}
	raw, err := os.ReadFile(o.schema)
	if err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	types, err := cluster.ParseSchema(raw)
	if err != nil {
		return nil, fmt.Errorf("read the schema %s, which has to be as 'kubectl get --raw /openapi/v3/apis/GROUP/VERSION' gives it: %w",
			o.schema, err)
	}
	blank := &unstructured.Unstructured{}
	blank.SetGroupVersionKind(gvk)
	if _, err := types.ObjectToTyped(blank); err != nil && isBuiltIn { // the schema is that of another document
		return builtIn, nil
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
	merged, err := manager.Apply(live.DeepCopy(), through(document, a.Subresource), a.Manager, a.Force)
	if err != nil {
		return nil, err
	}
	u, ok := merged.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("the merge made a %T", merged)
	}
	return u, nil
}

// through is what a subresource takes of a document: its own field, beside the metadata.
func through(document *unstructured.Unstructured, subresource string) *unstructured.Unstructured {
	if subresource == "" {
		return document
	}
	taken := document.DeepCopy()
	for field := range document.Object {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata", subresource}, field) {
			delete(taken.Object, field)
		}
	}
	return taken
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
