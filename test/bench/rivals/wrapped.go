package rivals

import (
	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// conditionedApp is an App with the methods by which libraries read and write conditions.
type conditionedApp struct {
	quellv1alpha1.App `json:",inline"`
}

// GetConditions returns the App's conditions, not a copy.
func (a *conditionedApp) GetConditions() []metav1.Condition { return a.Status.Conditions }

// SetConditions replaces the App's conditions.
func (a *conditionedApp) SetConditions(to []metav1.Condition) { a.Status.Conditions = to }

// DeepCopyObject keeps the type, which the embedded App's method would not.
func (a *conditionedApp) DeepCopyObject() runtime.Object {
	c := &conditionedApp{}
	a.DeepCopyInto(&c.App)
	return c
}

type conditionedAppList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []conditionedApp `json:"items"`
}

// DeepCopyObject copies the list and what is in it.
func (l *conditionedAppList) DeepCopyObject() runtime.Object {
	c := &conditionedAppList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*conditionedApp))
	}
	return c
}

// addConditioned registers the two in the place of App and AppList.
func addConditioned(scheme *runtime.Scheme) {
	addKinds(scheme, &conditionedApp{}, &conditionedAppList{})
}

// addKinds registers types of one's own for App and AppList.
func addKinds(scheme *runtime.Scheme, app, list runtime.Object) {
	version := quellv1alpha1.SchemeGroupVersion
	scheme.AddKnownTypeWithName(version.WithKind("App"), app)
	scheme.AddKnownTypeWithName(version.WithKind("AppList"), list)
	metav1.AddToGroupVersion(scheme, version)
}
