package cluster

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/frame"
	"github.com/hduolab/quell/controller/fieldowners"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Schemas gives the merge rules of kinds: as the API server publishes them, which is asked once for each group version, or
// without one, as they are built in for the kinds of Kubernetes itself. It is not safe for concurrent use.
type Schemas struct {
	frame     *frame.Frame
	published map[schema.GroupVersion]managedfields.TypeConverter
}

// NewSchemas makes an empty set of schemas.
func NewSchemas(f *frame.Frame) *Schemas {
	return &Schemas{frame: f, published: map[schema.GroupVersion]managedfields.TypeConverter{}}
}

// BuiltIn returns the merge rules of a kind of Kubernetes itself, or false.
func BuiltIn(gvk schema.GroupVersionKind) (managedfields.TypeConverter, bool) {
	if !scheme.Scheme.Recognizes(gvk) {
		return nil, false
	}
	return applyconfigurations.NewTypeConverter(scheme.Scheme), true
}

// Structure is fieldowners.Structure of an object, or nil where its schema is not to be had or does not fit.
func (s *Schemas) Structure(o Object) *fieldpath.Set {
	gvk := o.GroupVersionKind()
	if o.IsLive() {
		types, err := s.fromServer(gvk.GroupVersion())
		return structure(o, types, err == nil)
	}
	types, found := BuiltIn(gvk)
	return structure(o, types, found)
}

func structure(o Object, types managedfields.TypeConverter, found bool) *fieldpath.Set {
	if !found {
		return nil
	}
	paths, err := fieldowners.Structure(o.Unstructured, o.GroupVersionKind(), types)
	if err != nil {
		return nil
	}
	return paths
}

func (s *Schemas) fromServer(gv schema.GroupVersion) (managedfields.TypeConverter, error) {
	if types, found := s.published[gv]; found {
		return types, nil
	}
	types, err := s.fetch(gv)
	if err != nil {
		return nil, fmt.Errorf("read the schema of %s: %w", gv, err)
	}
	s.published[gv] = types
	return types, nil
}

func (s *Schemas) fetch(gv schema.GroupVersion) (managedfields.TypeConverter, error) {
	client, err := s.frame.Config.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	documents, err := client.OpenAPIV3().Paths()
	if err != nil {
		return nil, err
	}
	path := "apis/" + gv.String()
	if gv.Group == "" {
		path = "api/" + gv.Version
	}
	document, found := documents[path]
	if !found {
		return nil, fmt.Errorf("the API server publishes no %s", path)
	}
	raw, err := document.Schema(runtime.ContentTypeJSON)
	if err != nil {
		return nil, err
	}
	return ParseSchema(raw)
}

// ParseSchema reads the merge rules of kinds from an OpenAPI v3 document of an API server.
func ParseSchema(raw []byte) (managedfields.TypeConverter, error) {
	// Most of the document is about requests, and is left undecoded.
	var parsed struct {
		Components *struct{ Schemas map[string]*spec.Schema }
	}
	if err := json.Unmarshal(raw, &parsed); err != nil {
		return nil, err
	}
	if parsed.Components == nil {
		return nil, errors.New("the document has no schemas")
	}
	return managedfields.NewTypeConverter(parsed.Components.Schemas, false)
}
