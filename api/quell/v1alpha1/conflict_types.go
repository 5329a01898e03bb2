package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ConflictMode says what happens when another field manager owns a field of a child that the App sets.
// +kubebuilder:validation:Enum=Force;Yield;Report
type ConflictMode string

// The conflict modes.
const (
	// ConflictForce takes the field back: the App is the source of truth.
	ConflictForce ConflictMode = "Force"
	// ConflictYield lets the other's value stand and gives the field up until nobody else owns it any more.
	ConflictYield ConflictMode = "Yield"
	// ConflictReport applies nothing of that child; condition Stalled names the field and its owner.
	ConflictReport ConflictMode = "Report"
)

// ConflictPolicy rules conflicts with other field managers on the App's children.
// +structType=granular
type ConflictPolicy struct {
	// mode Force, the default, takes a field back; Yield lets the other's value stand; Report leaves that child alone and says so
	// in condition Stalled.
	// +optional
	Mode ConflictMode `json:"mode,omitempty"`

	// rules are exceptions from mode. Of several that fit a field, the one with the longest path counts.
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=path
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Rules []ConflictRule `json:"rules,omitempty"`
}

// ConflictRule rules conflicts on one field of one kind of child, and on all that is within it.
// +structType=granular
type ConflictRule struct {
	// kind of the child.
	// +kubebuilder:validation:Enum=Deployment;Service;HorizontalPodAutoscaler;Ingress;HTTPRoute;PodDisruptionBudget;ServiceAccount;NetworkPolicy
	// +required
	Kind string `json:"kind,omitempty"`

	// path of the field as status.conflicts shows it, for example .spec.replicas or
	// .spec.template.spec.containers[name="app"].image.
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.startsWith('.')",message="must begin with a dot, for example .spec.replicas"
	// +required
	Path string `json:"path,omitempty"`

	// mode of this field.
	// +required
	Mode ConflictMode `json:"mode,omitempty"`
}

// FieldConflict is a field of a child that somebody else owns although the App sets it.
// +structType=granular
type FieldConflict struct {
	// kind of the child.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind,omitempty"`

	// path of the field in the child.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +required
	Path string `json:"path,omitempty"`

	// mode by which the conflict is handled.
	// +required
	Mode ConflictMode `json:"mode,omitempty"`

	// manager that owns the field; absent when the writer left no trace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Manager string `json:"manager,omitempty"`

	// operation by which that manager took it: Apply or Update.
	// +kubebuilder:validation:Enum=Apply;Update
	// +optional
	Operation metav1.ManagedFieldsOperationType `json:"operation,omitempty"`

	// subresource through which that manager took it, for example scale.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Subresource string `json:"subresource,omitempty"`

	// since is when the operator first saw it.
	// +required
	Since metav1.Time `json:"since,omitzero"` //nolint:kubeapilinter // as lastTransitionTime of a condition
}
