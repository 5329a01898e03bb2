package stormwatch

import (
	"fmt"
	"slices"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
)

// crdName is the CustomResourceDefinition of StormWatch.
const crdName = "stormwatches.quell.dev"

// Preflight returns an error that says what to do when the cluster does not serve StormWatch, or serves it without its status
// subresource.
func Preflight(d discovery.DiscoveryInterface) error {
	gv := quellv1alpha1.SchemeGroupVersion.String()
	list, err := d.ServerResourcesForGroupVersion(gv)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("the cluster does not serve %s: install the CustomResourceDefinitions with 'kubectl apply -f config/crd' and start again", gv)
	}
	if err != nil {
		return fmt.Errorf("ask the cluster for the resources of %s: %w", gv, err)
	}
	for _, resource := range []string{"stormwatches", "stormwatches/status"} {
		if !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource }) {
			return fmt.Errorf("the cluster serves %s without %q: install this operator's CustomResourceDefinition %s with 'kubectl apply -f config/crd' and start again", gv, resource, crdName)
		}
	}
	return nil
}
