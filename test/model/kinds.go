package model

import (
	"fmt"
	"maps"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	structuraldefaulting "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	schemaobjectmeta "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	structuralpruning "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"
)

// resource is a kind as the API server serves it, in one version.
type resource struct {
	schema.GroupVersionKind
	plural string
	// managers are the API server's field managers by subresource; "status" is not in it when the kind does not have it.
	managers map[string]*managedfields.FieldManager
	// custom is the schema of a custom resource, nil for a built-in kind.
	custom *structuralschema.Structural
	// validator checks a custom resource by its schema; rules in CEL are not checked.
	validator validation.SchemaValidator
	// generation tells that the API server counts generations.
	generation bool
	// scheme knows the Go type of a built-in kind.
	scheme *runtime.Scheme
}

func (r *resource) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.plural}
}

// Kinds are what a server serves. It is made once and may be shared by any number of servers at the same time.
type Kinds struct {
	scheme    *runtime.Scheme
	resources map[schema.GroupKind]*resource
	memory    *memory
}

// builtIn are the built-in kinds, with those that have a status of their own and those whose generation is counted.
var builtIn = []struct {
	group, version, kind, plural string
	status, generation           bool
}{
	{"", "v1", "ConfigMap", "configmaps", false, false},
	{"", "v1", "Pod", "pods", true, false},
	{"", "v1", "Service", "services", true, false},
	{"", "v1", "ServiceAccount", "serviceaccounts", false, false},
	{"apps", "v1", "Deployment", "deployments", true, true},
	{"apps", "v1", "ReplicaSet", "replicasets", true, true},
	{"autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", true, false},
	{"events.k8s.io", "v1", "Event", "events", false, false},
	{"networking.k8s.io", "v1", "Ingress", "ingresses", true, true},
	{"networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", false, true},
	{"policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", true, true},
}

// NewKinds returns the built-in kinds and those of the CustomResourceDefinitions, which are given as YAML. The scheme must know
// all of them.
func NewKinds(scheme *runtime.Scheme, definitions ...[]byte) (*Kinds, error) {
	k := &Kinds{scheme: scheme, resources: map[schema.GroupKind]*resource{}, memory: &memory{known: map[Digest]outcome{}}}
	types := applyconfigurations.NewTypeConverter(scheme)
	for _, b := range builtIn {
		r := &resource{
			GroupVersionKind: schema.GroupVersionKind{Group: b.group, Version: b.version, Kind: b.kind},
			plural:           b.plural, generation: b.generation, scheme: scheme,
		}
		if err := r.manage(types, b.status); err != nil {
			return nil, err
		}
		k.resources[r.GroupKind()] = r
	}
	for _, raw := range definitions {
		r, err := customResource(raw)
		if err != nil {
			return nil, fmt.Errorf("read a CustomResourceDefinition: %w", err)
		}
		k.resources[r.GroupKind()] = r
	}
	return k, nil
}

// customResource serves the first version of a definition.
func customResource(raw []byte) (*resource, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(raw, crd); err != nil {
		return nil, err
	}
	version := crd.Spec.Versions[0]
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, internal, nil); err != nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(internal)
	if err != nil {
		return nil, err
	}
	validator, _, err := validation.NewSchemaValidator(internal)
	if err != nil {
		return nil, err
	}
	types, err := published(crd, version.Name)
	if err != nil {
		return nil, err
	}
	r := &resource{
		GroupVersionKind: schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind},
		plural:           crd.Spec.Names.Plural, custom: structural, validator: validator, generation: true,
	}
	return r, r.manage(types, version.Subresources != nil && version.Subresources.Status != nil)
}

// published is the type converter that the API server makes of a definition.
func published(crd *apiextensionsv1.CustomResourceDefinition, version string) (managedfields.TypeConverter, error) {
	document, err := builder.BuildOpenAPIV3(crd, version, builder.Options{})
	if err != nil {
		return nil, err
	}
	schemas := map[string]*spec.Schema{}
	maps.Copy(schemas, document.Components.Schemas)
	return managedfields.NewTypeConverter(schemas, false)
}

// manage makes the field managers of the object itself and of its status, with the fields that each of the two endpoints ignores.
func (r *resource) manage(types managedfields.TypeConverter, status bool) error {
	reset := map[string][]fieldpath.Path{"": nil}
	if status {
		reset[""] = []fieldpath.Path{fieldpath.MakePathOrDie("status")}
		reset["status"] = []fieldpath.Path{fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("metadata")}
		if r.custom == nil {
			reset["status"][1] = fieldpath.MakePathOrDie("metadata", "labels")
		}
	}
	r.managers = map[string]*managedfields.FieldManager{}
	for subresource, paths := range reset {
		filters := fieldpath.NewExcludeFilterSetMap(map[fieldpath.APIVersion]*fieldpath.Set{
			fieldpath.APIVersion(r.GroupVersion().String()): fieldpath.NewSet(paths...),
		})
		make := managedfields.NewDefaultFieldManager
		if r.custom != nil {
			make = managedfields.NewDefaultCRDFieldManager
		}
		m, err := make(types, r, r, r, r.GroupVersionKind, r.GroupVersion(), subresource, filters)
		if err != nil {
			return fmt.Errorf("field manager of %s: %w", r.Kind, err)
		}
		r.managers[subresource] = m
	}
	return nil
}

// New makes an empty object, as a runtime.ObjectCreater. That of a built-in kind has what its Go type always has.
func (r *resource) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{}
	if r.custom == nil {
		o, err := r.scheme.New(gvk)
		if err != nil {
			return nil, err
		}
		if u.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(o); err != nil {
			return nil, err
		}
	}
	u.SetGroupVersionKind(gvk)
	return u, nil
}

// Convert and the two below make a runtime.ObjectConvertor of a resource that has one version.
func (r *resource) Convert(_, _, _ any) error {
	return fmt.Errorf("not needed for one version of %s", r.Kind)
}

// ConvertToVersion returns what it is given.
func (r *resource) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

// ConvertFieldLabel refuses.
func (r *resource) ConvertFieldLabel(schema.GroupVersionKind, string, string) (string, string, error) {
	return "", "", fmt.Errorf("no field labels of %s", r.Kind)
}

// prune drops what a custom resource's schema does not have.
func (r *resource) prune(u *unstructured.Unstructured) error {
	apiVersion, kind := u.GetAPIVersion(), u.GetKind()
	metadata, found, err := schemaobjectmeta.GetObjectMeta(u.Object, true)
	if err != nil {
		return err
	}
	structuralpruning.Prune(u.Object, r.custom, true)
	structuraldefaulting.PruneNonNullableNullsWithoutDefaults(u.Object, r.custom)
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	if found {
		return schemaobjectmeta.SetObjectMeta(u.Object, metadata)
	}
	return nil
}

// Default makes a runtime.ObjectDefaulter of the resource: a custom resource gets its schema's defaults, a built-in kind takes the
// form of its Go type and the defaults of defaults.go.
func (r *resource) Default(in runtime.Object) {
	u := in.(*unstructured.Unstructured)
	if r.custom != nil {
		structuraldefaulting.Default(u.Object, r.custom)
		return
	}
	if err := r.typed(u); err != nil {
		panic(fmt.Sprintf("model: %s %s does not fit its Go type: %v", r.Kind, u.GetName(), err))
	}
}

func (r *resource) typed(u *unstructured.Unstructured) error {
	o, err := r.scheme.New(r.GroupVersionKind)
	if err != nil {
		return err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o); err != nil {
		return err
	}
	setDefaults(o)
	u.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	u.SetGroupVersionKind(r.GroupVersionKind)
	return err
}
