package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// AppPort is one port on which a container listens.
type AppPort struct {
	// name identifies the port; probes, service.ports and routes refer to it.
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

	// protocol is the port's transport protocol; unset means TCP.
	// +kubebuilder:validation:Enum=TCP;UDP;SCTP
	// +optional
	Protocol corev1.Protocol `json:"protocol,omitempty"`
}

// AppContainer is a container beside the application's own: an init container or a sidecar.
// +structType=granular
// +kubebuilder:validation:XValidation:rule="[self.?readinessProbe.?httpGet.?port, self.?readinessProbe.?tcpSocket.?port, self.?startupProbe.?httpGet.?port, self.?startupProbe.?tcpSocket.?port].all(o, !o.hasValue() || type(o.value()) != string || (has(self.ports) && self.ports.exists(p, p.name == o.value())))",message="a probe names a port that this container does not have; add it to the container's ports, or give the number"
type AppContainer struct {
	// name of the container. The application's own container is named app.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower-case letters, digits and dashes, for example log-shipper"
	// +kubebuilder:validation:XValidation:rule="self != 'app'",message="app is the name of the application's own container; choose another"
	// +required
	Name string `json:"name,omitempty"`

	// image of the container.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^\\\\s]+$')",message="must be an image reference without spaces, for example registry.example.com/team/app:1.2.3"
	// +required
	Image string `json:"image,omitempty"`

	// imagePullPolicy says when the kubelet pulls the image; unset leaves the choice to Kubernetes.
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	// +optional
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// command replaces the image's entry point.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=32768
	// +optional
	Command []string `json:"command,omitempty"`

	// args are the arguments of the command or of the image's entry point.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=32768
	// +optional
	Args []string `json:"args,omitempty"`

	// workingDir is the directory in which the command starts; unset means the image's own.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	WorkingDir string `json:"workingDir,omitempty"`

	// env are environment variables of the container.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:XValidation:rule="self.all(e, !has(e.valueFrom) || ((!has(e.value) || size(e.value) == 0) && [has(e.valueFrom.fieldRef), has(e.valueFrom.resourceFieldRef), has(e.valueFrom.configMapKeyRef), has(e.valueFrom.secretKeyRef), has(e.valueFrom.fileKeyRef)].filter(x, x).size() == 1))",message="an env entry has either value or valueFrom, and valueFrom has exactly one source; remove the others"
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`

	// envFrom takes environment variables from ConfigMaps and Secrets.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(e, has(e.configMapRef) != has(e.secretRef) && size(e.?configMapRef.?name.orValue(e.?secretRef.?name.orValue(''))) > 0)",message="each envFrom entry needs the name of either a configMapRef or a secretRef"
	// +optional
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`

	// ports of a sidecar. service.extraPorts can lead to them.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Ports []AppPort `json:"ports,omitempty"`

	// resources are the container's resource requests and limits.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// volumeMounts mount entries of spec.volumes or spec.configFiles.
	// +listType=map
	// +listMapKey=mountPath
	// +kubebuilder:validation:MaxItems=64
	// +optional
	VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitempty"`

	// securityContext of the container; what is not set here is as spec.defaults.security says.
	// +kubebuilder:validation:XValidation:rule="!(self.?runAsNonRoot.orValue(false) && self.?runAsUser.orValue(1) == 0)",message="runAsUser 0 is root: choose another user, or set runAsNonRoot to false"
	// +kubebuilder:validation:XValidation:rule="!(self.?privileged.orValue(false) && !self.?allowPrivilegeEscalation.orValue(true))",message="a privileged container can escalate: remove allowPrivilegeEscalation, or privileged"
	// +optional
	SecurityContext *corev1.SecurityContext `json:"securityContext,omitempty"`

	// readinessProbe of a sidecar keeps the Pod out of the Service while it fails.
	// +kubebuilder:validation:XValidation:rule="[has(self.exec), has(self.httpGet), has(self.tcpSocket), has(self.grpc)].filter(x, x).size() == 1",message="a probe has exactly one of exec, httpGet, tcpSocket and grpc"
	// +kubebuilder:validation:XValidation:rule="(!has(self.httpGet) || type(self.httpGet.port) != int || (self.httpGet.port >= 1 && self.httpGet.port <= 65535)) && (!has(self.tcpSocket) || type(self.tcpSocket.port) != int || (self.tcpSocket.port >= 1 && self.tcpSocket.port <= 65535))",message="the port of a probe is a number from 1 to 65535, or the name of a port"
	// +optional
	ReadinessProbe *corev1.Probe `json:"readinessProbe,omitempty"`

	// startupProbe of a sidecar holds the containers after it back until it has succeeded.
	// +kubebuilder:validation:XValidation:rule="[has(self.exec), has(self.httpGet), has(self.tcpSocket), has(self.grpc)].filter(x, x).size() == 1",message="a probe has exactly one of exec, httpGet, tcpSocket and grpc"
	// +kubebuilder:validation:XValidation:rule="(!has(self.httpGet) || type(self.httpGet.port) != int || (self.httpGet.port >= 1 && self.httpGet.port <= 65535)) && (!has(self.tcpSocket) || type(self.tcpSocket.port) != int || (self.tcpSocket.port >= 1 && self.tcpSocket.port <= 65535))",message="the port of a probe is a number from 1 to 65535, or the name of a port"
	// +kubebuilder:validation:XValidation:rule="self.?successThreshold.orValue(1) == 1",message="successThreshold of this probe can only be 1; remove it"
	// +optional
	StartupProbe *corev1.Probe `json:"startupProbe,omitempty"`
}

// AppVolume is a volume of the Pods, of exactly one source. Sources that are not here can be set by spec.podTemplate.
// +structType=granular
// +kubebuilder:validation:XValidation:rule="[has(self.configMap), has(self.secret), has(self.emptyDir), has(self.persistentVolumeClaim), has(self.projected), has(self.csi), has(self.hostPath), has(self.nfs)].filter(x, x).size() == 1",message="a volume has exactly one source: configMap, secret, emptyDir, persistentVolumeClaim, projected, csi, hostPath or nfs; use spec.podTemplate for others"
// +kubebuilder:validation:XValidation:rule="[self.?configMap.?name, self.?secret.?secretName, self.?persistentVolumeClaim.?claimName, self.?hostPath.?path, self.?nfs.?server, self.?csi.?driver].exists(o, o.hasValue() && size(o.value()) > 0) || has(self.emptyDir) || has(self.projected)",message="the source needs its name: configMap.name, secret.secretName, persistentVolumeClaim.claimName, hostPath.path, nfs.server or csi.driver"
// +kubebuilder:validation:XValidation:rule="[self.?configMap.?defaultMode, self.?secret.?defaultMode, self.?projected.?defaultMode].all(o, o.orValue(0) >= 0 && o.orValue(0) <= 511)",message="defaultMode must be between 0 and 0777; write it as an octal number, for example 0640"
type AppVolume struct {
	// name of the volume, by which mounts refer to it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower-case letters, digits and dashes, for example cache"
	// +required
	Name string `json:"name,omitempty"`

	// configMap puts the keys of a ConfigMap into files.
	// +optional
	ConfigMap *corev1.ConfigMapVolumeSource `json:"configMap,omitempty"`

	// secret puts the keys of a Secret into files.
	// +optional
	Secret *corev1.SecretVolumeSource `json:"secret,omitempty"`

	// emptyDir is a directory that lives as long as the Pod.
	// +optional
	EmptyDir *corev1.EmptyDirVolumeSource `json:"emptyDir,omitempty"`

	// persistentVolumeClaim is an existing claim of the App's namespace.
	// +optional
	PersistentVolumeClaim *corev1.PersistentVolumeClaimVolumeSource `json:"persistentVolumeClaim,omitempty"`

	// projected joins several sources in one directory.
	// +optional
	Projected *corev1.ProjectedVolumeSource `json:"projected,omitempty"`

	// csi is an ephemeral volume of a CSI driver.
	// +optional
	CSI *corev1.CSIVolumeSource `json:"csi,omitempty"`

	// hostPath is a file or directory of the node.
	// +optional
	HostPath *corev1.HostPathVolumeSource `json:"hostPath,omitempty"`

	// nfs is a share of an NFS server.
	// +optional
	NFS *corev1.NFSVolumeSource `json:"nfs,omitempty"`
}

// ConfigChange says what happens to running Pods when the content of a ConfigMap or Secret changes.
// +kubebuilder:validation:Enum=Roll;Ignore
type ConfigChange string

// What a change of content does.
const (
	// ConfigRoll replaces the Pods, as a change of the App would.
	ConfigRoll ConfigChange = "Roll"
	// ConfigIgnore leaves the Pods alone; the kubelet updates the files, except where subPath is mounted.
	ConfigIgnore ConfigChange = "Ignore"
)

// AppConfigFiles mounts a ConfigMap or a Secret of the App's namespace as files into the application's container.
// +structType=granular
// +kubebuilder:validation:XValidation:rule="has(self.configMap) != has(self.secret)",message="give either configMap or secret, the name of the object whose keys become files"
type AppConfigFiles struct {
	// name of the volume that is made for it; sidecars and init containers can mount it too.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower-case letters, digits and dashes, for example settings"
	// +required
	Name string `json:"name,omitempty"`

	// mountPath is the directory in which the files appear, or with subPath the file.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/') && !self.contains(':')",message="must be an absolute path without a colon, for example /etc/app"
	// +required
	MountPath string `json:"mountPath,omitempty"`

	// subPath mounts one key as the file mountPath instead of all keys as a directory.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$') && self != '..'",message="must be a key of the ConfigMap or Secret, for example app.yaml"
	// +optional
	SubPath string `json:"subPath,omitempty"`

	// configMap is the name of a ConfigMap.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="must be the name of a ConfigMap: lower-case letters, digits, dashes and dots"
	// +optional
	ConfigMap string `json:"configMap,omitempty"`

	// secret is the name of a Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="must be the name of a Secret: lower-case letters, digits, dashes and dots"
	// +optional
	Secret string `json:"secret,omitempty"`

	// onChange Roll replaces the Pods when the content changes; Ignore, the default, leaves them alone. Roll needs the
	// permissions in config/configroll.
	// +optional
	OnChange ConfigChange `json:"onChange,omitempty"`
}

// SecurityDefault says which security settings the operator fills in.
// +kubebuilder:validation:Enum=Restricted;None
type SecurityDefault string

// The security defaults.
const (
	// SecurityRestricted fills in what the Pod Security Standard "restricted" asks for.
	SecurityRestricted SecurityDefault = "Restricted"
	// SecurityNone fills in nothing.
	SecurityNone SecurityDefault = "None"
)

// SpreadDefault says whether the operator spreads the Pods where the App has no topologySpreadConstraints.
// +kubebuilder:validation:Enum=Spread;None
type SpreadDefault string

// The spread defaults.
const (
	// SpreadOn prefers different zones and different nodes.
	SpreadOn SpreadDefault = "Spread"
	// SpreadNone leaves the choice to the scheduler.
	SpreadNone SpreadDefault = "None"
)

// AppDefaults turns the operator's defaults on and off. Unset means on, except for an App whose Pods are of a release
// without that default: status.rendering below 2 tells.
// +structType=granular
type AppDefaults struct {
	// security Restricted fills in runAsNonRoot, the runtime's seccomp profile, no privilege escalation and no capabilities
	// wherever the App does not say otherwise; None fills in nothing.
	// +optional
	Security SecurityDefault `json:"security,omitempty"`

	// topologySpread Spread prefers different zones and different nodes for the Pods of an App that has no constraints of its own;
	// None does not.
	// +optional
	TopologySpread SpreadDefault `json:"topologySpread,omitempty"`
}

// AppServiceAccount chooses or makes the ServiceAccount of the Pods.
// +structType=granular
// +kubebuilder:validation:XValidation:rule="(has(self.create) && self.create) || has(self.name)",message="name the ServiceAccount to use, or set create to true"
// +kubebuilder:validation:XValidation:rule="!has(self.annotations) || (has(self.create) && self.create)",message="annotations are for a ServiceAccount that the App makes: set create to true, or remove them"
type AppServiceAccount struct {
	// name of the ServiceAccount; with create it may be left out and is then the App's name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="must be lower-case letters, digits, dashes and dots"
	// +optional
	Name string `json:"name,omitempty"`

	// create makes the ServiceAccount; without it an existing one is used.
	// +optional
	Create *bool `json:"create,omitempty"` //nolint:kubeapilinter // it exists or not, there is no third way

	// annotations of the ServiceAccount, for example of a cloud provider's workload identity.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k.lowerAscii()).hasValue() && !k.startsWith('quell.dev/') && k != 'kubectl.kubernetes.io/last-applied-configuration')",message="each key must be an annotation key, for example example.com/owner; quell.dev/ and kubectl.kubernetes.io/last-applied-configuration belong to the operator and kubectl"
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// automount says whether the Pods get a token of the ServiceAccount, as automountServiceAccountToken of a Pod does.
	// +optional
	Automount *bool `json:"automount,omitempty"` //nolint:kubeapilinter // as in the Pod's own API
}
