package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Condition types of StormWatch, beside Ready, Reconciling and Stalled.
const (
	// ConditionStormDetected is True while status.storms names any.
	ConditionStormDetected = "StormDetected"
)

// CustomResources says whether the resources of CustomResourceDefinitions are watched.
// +kubebuilder:validation:Enum=All;None
type CustomResources string

// The choices of spec.customResources.
const (
	// CustomResourcesAll are the resources of every CustomResourceDefinition, also of those that are made later.
	CustomResourcesAll CustomResources = "All"
	// CustomResourcesNone are none but what spec.kinds names.
	CustomResourcesNone CustomResources = "None"
)

// StormWatchSpec says what is watched and from when on writes are a storm.
// +structType=granular
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="has(self.kinds) || (has(self.customResources) && self.customResources == 'All')",message="nothing would be watched: list kinds, or set customResources to All"
type StormWatchSpec struct {
	// customResources All watches the resources of every CustomResourceDefinition; None, the default, only what kinds names.
	// +optional
	CustomResources CustomResources `json:"customResources,omitempty"`

	// kinds to watch.
	// +listType=map
	// +listMapKey=group
	// +listMapKey=kind
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Kinds []StormWatchKind `json:"kinds,omitempty"`

	// namespaces whose objects are watched; without any it is all namespaces, and objects that belong to none.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:XValidation:rule="!format.dns1123Label().validate(self).hasValue()",message="must be the name of a namespace"
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`

	// thresholds from which writes are a storm.
	// +optional
	Thresholds *StormThresholds `json:"thresholds,omitempty"`

	// maxStorms is how many storms status names at most. 10 by default.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=50
	// +optional
	MaxStorms int32 `json:"maxStorms,omitempty"`
}

// StormWatchKind names kinds of objects.
// +structType=granular
type StormWatchKind struct {
	// group of the kind, for example apps; core is written as core, and * stands for every group.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '*' || !format.dns1123Subdomain().validate(self).hasValue()",message="must be an API group, for example apps; core for the group that has no name; or *"
	// +required
	Group string `json:"group,omitempty"`

	// kind as manifests have it, for example Deployment; * stands for every kind of the group.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '*' || self.matches('^[A-Z][A-Za-z0-9]*$')",message="must be a kind as manifests have it, for example Deployment; or *"
	// +required
	Kind string `json:"kind,omitempty"`
}

// StormThresholds are what tells a storm from traffic in good order. A rollout, leases, events and heartbeats are never a storm.
// +structType=granular
type StormThresholds struct {
	// writesPerMinute to one object from which needless writes are a storm. 60 by default; that of kubectl quell storm is 0.8 per second.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	WritesPerMinute int32 `json:"writesPerMinute,omitempty"`

	// managerWritesPerMinute of one field manager over all objects from which needless writes are a storm however they are spread.
	// 20 times writesPerMinute by default.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	ManagerWritesPerMinute int32 `json:"managerWritesPerMinute,omitempty"`

	// persistSeconds is how long changes of values in no known pattern, which need not be a mistake, may go on at that rate before
	// they are a storm. 300 by default.
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=86400
	// +optional
	PersistSeconds int32 `json:"persistSeconds,omitempty"`
}

// StormWatchStatus is what was found. Nothing in it moves by itself, so that the watch is no storm.
// +structType=granular
type StormWatchStatus struct {
	// observedGeneration is the generation of the spec that this status speaks of.
	// +kubebuilder:validation:Minimum=-1
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`

	// watched is how many resources are watched.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Watched *int32 `json:"watched,omitempty"`

	// stormCount is how many storms go on, of which storms names the worst; above 20 in steps of 20, 50, 100, and so on.
	// +kubebuilder:validation:Minimum=0
	// +optional
	StormCount *int32 `json:"stormCount,omitempty"`

	// storms that go on, the fastest first; each keeps its place until it has ended, or has to make room for one that is far worse.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	// +optional
	Storms []Storm `json:"storms,omitempty"`

	// notWatched are resources that spec asks for and that are not seen, and why.
	// +listType=map
	// +listMapKey=group
	// +listMapKey=resource
	// +kubebuilder:validation:MaxItems=64
	// +optional
	NotWatched []NotWatched `json:"notWatched,omitempty"`

	// conditions are Ready, StormDetected, and Reconciling and Stalled while they are True, or another field manager owns them too.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Storm is an object that is written all the time without need.
// +structType=granular
type Storm struct {
	// group of the object; absent for the core group.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Group string `json:"group,omitempty"`

	// resource of the object, for example deployments.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Resource string `json:"resource,omitempty"`

	// namespace of the object; absent where it belongs to none.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name,omitempty"`

	// verdict is the kind of storm, for example TimestampChurn.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Verdict string `json:"verdict,omitempty"`

	// managers who write, those with most writes first; absent when managedFields do not tell.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MaxLength=256
	// +optional
	Managers []string `json:"managers,omitempty"`

	// fields that change, those that change most often first.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MaxLength=512
	// +optional
	Fields []string `json:"fields,omitempty"`

	// rate of writes in steps of 1, 2 and 5, for example "at least 100/s"; it is left as it is until the rate is far from it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Rate string `json:"rate,omitempty"`

	// since is when the storm was found, which is some seconds after its writes began.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// remedy is the usual cure.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Remedy string `json:"remedy,omitempty"`
}

// NotWatched is a resource that is not seen.
// +structType=granular
type NotWatched struct {
	// group as spec.kinds writes it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Group string `json:"group,omitempty"`

	// resource by its name, or the kind where no resource of that kind is known.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Resource string `json:"resource,omitempty"`

	// reason in one word: Forbidden, NotFound, NotWatchable, ClusterScoped or Failing.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Reason string `json:"reason,omitempty"`

	// message says what to do.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
}

// StormWatch has the operator look for write storms and report them in its status.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=sw,categories=quell
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Watched",type=integer,JSONPath=`.status.watched`
// +kubebuilder:printcolumn:name="Storms",type=integer,JSONPath=`.status.stormCount`
// +kubebuilder:printcolumn:name="Resource",type=string,JSONPath=`.status.storms[0].resource`
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.status.storms[0].namespace`
// +kubebuilder:printcolumn:name="Worst",type=string,JSONPath=`.status.storms[0].name`
// +kubebuilder:printcolumn:name="Verdict",type=string,JSONPath=`.status.storms[0].verdict`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Managers",type=string,JSONPath=`.status.storms[0].managers`,priority=1
// +kubebuilder:printcolumn:name="Fields",type=string,JSONPath=`.status.storms[0].fields`,priority=1
type StormWatch struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's standard metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec says what is watched.
	// +required
	Spec StormWatchSpec `json:"spec,omitzero"`

	// status is what was found.
	// +kubebuilder:default={"observedGeneration":-1}
	// +optional
	Status StormWatchStatus `json:"status,omitzero"`
}

// StormWatchList is a list of StormWatches.
// +kubebuilder:object:root=true
type StormWatchList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []StormWatch `json:"items"`
}
