// Package v1alpha1 holds the words that users of Quell write: App, one object for a Deployment-based application,
// and StormWatch, which has the operator look for write storms.
//
// Lists carry listType and listMapKey, strings and lists carry limits, and every status field that can be zero is a
// pointer: a zero that omitempty drops would never compare equal to what was applied.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +kubebuilder:ac:output:package=../../../applyconfig
// +groupName=quell.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SchemeGroupVersion is the group and version of the kinds in this package.
var SchemeGroupVersion = schema.GroupVersion{Group: "quell.dev", Version: "v1alpha1"}

var schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

// AddToScheme registers the kinds of this package with a scheme.
var AddToScheme = schemeBuilder.AddToScheme

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, &App{}, &AppList{}, &StormWatch{}, &StormWatchList{})
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
