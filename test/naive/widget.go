package naive

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// GroupVersion of Widget.
var GroupVersion = schema.GroupVersion{Group: "example.com", Version: "v1"}

//go:embed widget_crd.yaml
var crd []byte

const (
	installTimeout = 2 * time.Minute
	pollEvery      = 50 * time.Millisecond
)

// Widget is the object of the incident.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WidgetSpec   `json:"spec,omitzero"`
	Status            WidgetStatus `json:"status,omitzero"`
}

// WidgetSpec is what people ask for.
type WidgetSpec struct {
	Size int32 `json:"size,omitempty"`
}

// WidgetStatus is what the operator observed.
type WidgetStatus struct {
	Size *int32 `json:"size,omitempty"`
	// LastUpdateTime is when the operator reconciled last, as RFC 3339 with or without fractions of a second.
	LastUpdateTime string `json:"lastUpdateTime,omitempty"`
}

// WidgetList is a list of Widgets.
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Widget `json:"items"`
}

// AddToScheme registers Widget.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// NewWidget returns a Widget as a user would create it.
func NewWidget(namespace, name string) *Widget {
	return &Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: WidgetSpec{Size: 1}}
}

// DeepCopyObject implements runtime.Object.
func (w *Widget) DeepCopyObject() runtime.Object {
	c := *w
	w.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	if w.Status.Size != nil {
		c.Status.Size = new(*w.Status.Size)
	}
	return &c
}

// DeepCopyObject implements runtime.Object.
func (l *WidgetList) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = make([]Widget, len(l.Items))
	for i := range l.Items {
		c.Items[i] = *l.Items[i].DeepCopyObject().(*Widget)
	}
	return &c
}

// Install creates or updates the CustomResourceDefinition of Widget and returns when the API server serves the kind and its
// OpenAPI schema.
func Install(ctx context.Context, config *rest.Config) error {
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(crd, &definition); err != nil {
		return fmt.Errorf("read the CustomResourceDefinition of Widget: %w", err)
	}
	_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{&definition}})
	if err != nil {
		return fmt.Errorf("install the CustomResourceDefinition of Widget: %w", err)
	}
	err = wait.PollUntilContextTimeout(ctx, pollEvery, installTimeout, true, func(context.Context) (bool, error) {
		_, err := types(config)
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the OpenAPI schema of Widget: %w", err)
	}
	return nil
}

// types are the merge rules of Widget, from the API server's own schema: there are no generated apply configurations for it.
func types(config *rest.Config) (managedfields.TypeConverter, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	document, err := openapi3.NewRoot(client.OpenAPIV3()).GVSpec(GroupVersion)
	if err != nil {
		return nil, fmt.Errorf("read the OpenAPI schema of %s: %w", GroupVersion, err)
	}
	return managedfields.NewTypeConverter(document.Components.Schemas, false)
}
