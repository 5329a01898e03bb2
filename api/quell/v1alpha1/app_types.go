package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Types of the conditions in App.status.conditions.
const (
	// ConditionReady is True when the application runs as the newest generation of its App asks.
	ConditionReady = "Ready"
	// ConditionAvailable is True when enough replicas serve, whatever generation they are of.
	ConditionAvailable = "Available"
	// ConditionProgressing tells how far the rollout of the newest generation is.
	ConditionProgressing = "Progressing"
	// ConditionReconciling is present, and True, only while the App is on its way to the newest generation (kstatus).
	ConditionReconciling = "Reconciling"
	// ConditionStalled is present, and True, only while a person has to change something before it goes on (kstatus).
	ConditionStalled = "Stalled"
)

// AppPhase is the one-word summary of an App's conditions.
// +kubebuilder:validation:Enum=Pending;Progressing;Running;Degraded;Failed;Terminating
type AppPhase string

// The phases of an App.
const (
	// PhasePending: no child exists yet.
	PhasePending AppPhase = "Pending"
	// PhaseProgressing: the newest generation is rolling out.
	PhaseProgressing AppPhase = "Progressing"
	// PhaseRunning: the newest generation serves with all its replicas.
	PhaseRunning AppPhase = "Running"
	// PhaseDegraded: it was rolled out and now lacks replicas, or is being kept from its desired state by another writer.
	PhaseDegraded AppPhase = "Degraded"
	// PhaseFailed: it cannot go on until a person changes something; condition Stalled says what.
	PhaseFailed AppPhase = "Failed"
	// PhaseTerminating: the App is being deleted.
	PhaseTerminating AppPhase = "Terminating"
)

// ServiceMode says whether the App has a Service.
// +kubebuilder:validation:Enum=Auto;None
type ServiceMode string

// The modes of an App's Service.
const (
	// ServiceAuto makes a Service when the App has ports.
	ServiceAuto ServiceMode = "Auto"
	// ServiceNone makes no Service.
	ServiceNone ServiceMode = "None"
)

// ConflictMode says what happens when another field manager owns a field of a child that the App sets.
// +kubebuilder:validation:Enum=Force;Report
type ConflictMode string

// The conflict modes.
const (
	// ConflictForce takes the field back: the App is the source of truth.
	ConflictForce ConflictMode = "Force"
	// ConflictReport applies nothing of that child; condition Stalled names the field and its owner.
	ConflictReport ConflictMode = "Report"
)

// AppSpec is what the application team asks for.
// +kubebuilder:validation:XValidation:rule="!has(self.service) || !has(self.service.ports) || self.service.ports.all(s, has(self.ports) && self.ports.exists(p, p.name == s.name))",message="each service.ports[].name must be the name of an entry in spec.ports; add that port or correct the name"
// +kubebuilder:validation:XValidation:rule="[self.?livenessProbe.?httpGet.?port, self.?livenessProbe.?tcpSocket.?port, self.?readinessProbe.?httpGet.?port, self.?readinessProbe.?tcpSocket.?port, self.?startupProbe.?httpGet.?port, self.?startupProbe.?tcpSocket.?port].all(o, !o.hasValue() || type(o.value()) != string || (has(self.ports) && self.ports.exists(p, p.name == o.value())))",message="a probe names a port that is not in spec.ports; add that port, correct the name, or give the number"
type AppSpec struct {
	// image is the container image of the application, for example registry.example.com/team/app:1.2.3.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^\\\\s]+$')",message="must be an image reference without spaces, for example registry.example.com/team/app:1.2.3"
	// +required
	Image string `json:"image,omitempty"`

	// imagePullPolicy says when the kubelet pulls the image; unset leaves the choice to Kubernetes (Always for :latest, else IfNotPresent).
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	// +optional
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// imagePullSecrets are Secrets of the App's namespace with credentials for the image's registry.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(s, has(s.name) && size(s.name) > 0)",message="each imagePullSecrets entry needs the name of a Secret"
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// command replaces the image's entry point; it is not run in a shell.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=32768
	// +optional
	Command []string `json:"command,omitempty"`

	// args are the arguments of the command or, without one, of the image's entry point.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=32768
	// +optional
	Args []string `json:"args,omitempty"`

	// env are environment variables of the container. An entry has a value or a valueFrom, not both.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:XValidation:rule="self.all(e, !(has(e.value) && size(e.value) > 0 && has(e.valueFrom)))",message="an env entry has either value or valueFrom; remove one of the two"
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`

	// envFrom takes environment variables from ConfigMaps and Secrets; later entries win, env wins over all.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`

	// replicas is the number of Pods asked for.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	// +kubebuilder:default=1
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// ports are the ports on which the application listens.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(p, self.exists_one(q, q.containerPort == p.containerPort && q.protocol == p.protocol))",message="two ports have the same containerPort and protocol; keep one of them (one port can serve several names only through service.ports)"
	// +optional
	Ports []AppPort `json:"ports,omitempty"`

	// resources are the container's resource requests and limits.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// livenessProbe restarts the container when it fails.
	// +optional
	LivenessProbe *corev1.Probe `json:"livenessProbe,omitempty"`

	// readinessProbe keeps the Pod out of the Service while it fails.
	// +optional
	ReadinessProbe *corev1.Probe `json:"readinessProbe,omitempty"`

	// startupProbe holds the two other probes back until it has succeeded once.
	// +optional
	StartupProbe *corev1.Probe `json:"startupProbe,omitempty"`

	// service shapes the Service in front of the Pods. Without it an App with ports gets a ClusterIP Service on its container ports.
	// +optional
	Service *AppService `json:"service,omitempty"`

	// commonLabels are added to every child and to the Pods. The operator's own keys cannot be used.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('quell.dev/') && !(k in ['app.kubernetes.io/name', 'app.kubernetes.io/instance', 'app.kubernetes.io/managed-by']))",message="app.kubernetes.io/name, app.kubernetes.io/instance, app.kubernetes.io/managed-by and quell.dev/ keys are set by the operator; use another key"
	// +optional
	CommonLabels map[string]string `json:"commonLabels,omitempty"`

	// commonAnnotations are added to every child and to the Pods. The operator's own keys cannot be used.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('quell.dev/') && !k.startsWith('deployment.kubernetes.io/') && k != 'kubectl.kubernetes.io/last-applied-configuration')",message="quell.dev/, deployment.kubernetes.io/ and kubectl.kubernetes.io/last-applied-configuration annotations belong to controllers and kubectl; use another key"
	// +optional
	CommonAnnotations map[string]string `json:"commonAnnotations,omitempty"`

	// conflictPolicy rules what happens when somebody else owns a field of a child that this App sets.
	// +optional
	ConflictPolicy *ConflictPolicy `json:"conflictPolicy,omitempty"`
}

// AppPort is one port on which the application listens.
type AppPort struct {
	// name identifies the port; probes and service.ports refer to it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]+(-[a-z0-9]+)*$') && self.matches('[a-z]')",message="must be lower-case letters, digits and single dashes with at least one letter, at most 15 characters, for example http"
	// +required
	Name string `json:"name,omitempty"`

	// containerPort is the port's number in the Pod.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +required
	ContainerPort int32 `json:"containerPort,omitempty"`

	// protocol is the port's transport protocol.
	// +kubebuilder:validation:Enum=TCP;UDP;SCTP
	// +kubebuilder:default=TCP
	// +optional
	Protocol corev1.Protocol `json:"protocol,omitempty"`
}

// AppService shapes the Service of an App.
type AppService struct {
	// mode None turns the Service off; Auto, the default, makes one when the App has ports.
	// +optional
	Mode ServiceMode `json:"mode,omitempty"`

	// type is the Service's type; unset means ClusterIP.
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
	// +optional
	Type corev1.ServiceType `json:"type,omitempty"`

	// ports maps App ports to other Service port numbers; a port that is not listed keeps its containerPort.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Ports []AppServicePort `json:"ports,omitempty"`
}

// AppServicePort maps one App port to a Service port.
type AppServicePort struct {
	// name of the entry in spec.ports.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	// +required
	Name string `json:"name,omitempty"`

	// port is the number on which the Service listens.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +required
	Port int32 `json:"port,omitempty"`
}

// ConflictPolicy rules conflicts with other field managers on the App's children.
type ConflictPolicy struct {
	// mode Force, the default, takes a field back; Report leaves that child alone and says so in condition Stalled.
	// +optional
	Mode ConflictMode `json:"mode,omitempty"`
}

// AppStatus is what the operator observed. It holds nothing that moves by itself: no time of the last reconcile, no counter.
type AppStatus struct {
	// observedGeneration is the metadata.generation that this status describes.
	// +kubebuilder:validation:Minimum=1
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase sums the conditions up in one word.
	// +optional
	Phase AppPhase `json:"phase,omitempty"`

	// ready shows ready and desired replicas, for example 2/3.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=24
	// +optional
	Ready string `json:"ready,omitempty"`

	// replicas is the number of Pods that exist.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// readyReplicas is the number of Pods that pass their readiness probe.
	// +optional
	ReadyReplicas *int32 `json:"readyReplicas,omitempty"`

	// availableReplicas is the number of Pods that have been ready long enough to count.
	// +optional
	AvailableReplicas *int32 `json:"availableReplicas,omitempty"`

	// updatedReplicas is the number of Pods of the newest Pod template.
	// +optional
	UpdatedReplicas *int32 `json:"updatedReplicas,omitempty"`

	// selector selects the App's Pods, in the form that the scale subresource wants.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Selector string `json:"selector,omitempty"`

	// images are the container images of the Pod template that is in force, sorted.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=1024
	// +optional
	Images []string `json:"images,omitempty"`

	// endpoint is the DNS name within the cluster and the first port of the Service, for example shop.team-a.svc:80.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=160
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// conditions of the App: Ready, Available, Progressing; Reconciling and Stalled only while they are true.
	// Conditions of other types belong to other controllers and are left alone.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// App is one Deployment-based application: the operator applies its Deployment and Service and reflects their state here.
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=qapp,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.image`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be at most 63 lower-case letters, digits and dashes and start with a letter, because the Service takes it; rename the App"
type App struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's standard metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what the application team asks for.
	// +required
	Spec AppSpec `json:"spec,omitzero"`

	// status is what the operator observed; it is written by the operator only.
	// +optional
	Status AppStatus `json:"status,omitzero"`
}

// AppList is a list of Apps.
// +kubebuilder:object:root=true
type AppList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []App `json:"items"`
}
