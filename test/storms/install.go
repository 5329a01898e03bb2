package storms

import (
	"context"
	"embed"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"
)

//go:embed crd/*.yaml
var crds embed.FS

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Install creates or updates the CustomResourceDefinitions of the kinds that storms write to, and returns when they are served.
func Install(config *rest.Config) error {
	var read []*apiextensionsv1.CustomResourceDefinition
	for _, r := range []schema.GroupVersionResource{widgets, gadgets} {
		raw, err := crds.ReadFile("crd/" + r.Resource + ".yaml")
		if err != nil {
			return fmt.Errorf("read the definition of %s: %w", r.Resource, err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(raw, crd); err != nil {
			return fmt.Errorf("read the definition of %s: %w", r.Resource, err)
		}
		read = append(read, crd)
	}
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: read}); err != nil {
		return fmt.Errorf("install the definitions: %w", err)
	}
	return nil
}

// Uninstall deletes the definitions of which there is no object left; others stay, for another storm may go on.
func Uninstall(ctx context.Context, config *rest.Config) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	var failed []error
	for _, r := range []schema.GroupVersionResource{widgets, gadgets} {
		if err := uninstall(ctx, client, r); err != nil && !apierrors.IsNotFound(err) {
			failed = append(failed, fmt.Errorf("delete the definition of %s: %w", r.Resource, err))
		}
	}
	return errors.Join(failed...)
}

func uninstall(ctx context.Context, client dynamic.Interface, r schema.GroupVersionResource) error {
	left, err := client.Resource(r).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil || len(left.Items) > 0 {
		return err
	}
	return client.Resource(definitions).Delete(ctx, r.GroupResource().String(), metav1.DeleteOptions{})
}
