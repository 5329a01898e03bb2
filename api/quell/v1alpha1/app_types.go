package v1alpha1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
	// ConditionFieldConflict is present, and True, only while somebody else owns fields of a child that the App sets.
	ConditionFieldConflict = "FieldConflict"
	// ConditionAutoscalingActive is present only while an autoscaler sets the number of Pods; it names the autoscaler.
	ConditionAutoscalingActive = "AutoscalingActive"
)

// AppPhase is the one-word summary of an App's conditions.
// +kubebuilder:validation:Enum=Pending;Progressing;Running;Degraded;Failed;Suspended;Terminating
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
	// PhaseSuspended: nothing is applied, as spec.suspend asks.
	PhaseSuspended AppPhase = "Suspended"
	// PhaseTerminating: the App is being deleted.
	PhaseTerminating AppPhase = "Terminating"
)

// AppSpec is what the application team asks for.
// +kubebuilder:validation:XValidation:rule="!has(self.service) || !has(self.service.ports) || self.service.ports.all(s, has(self.ports) && self.ports.exists(p, p.name == s.name))",message="each service.ports[].name must be the name of an entry in spec.ports; add that port or correct the name"
// +kubebuilder:validation:XValidation:rule="[self.?livenessProbe.?httpGet.?port, self.?livenessProbe.?tcpSocket.?port, self.?readinessProbe.?httpGet.?port, self.?readinessProbe.?tcpSocket.?port, self.?startupProbe.?httpGet.?port, self.?startupProbe.?tcpSocket.?port].all(o, !o.hasValue() || type(o.value()) != string || (has(self.ports) && self.ports.exists(p, p.name == o.value())))",message="a probe names a port that is not in spec.ports; add that port, correct the name, or give the number"
// +kubebuilder:validation:XValidation:rule="!has(self.service) || !has(self.service.extraPorts) || !has(self.ports) || self.service.extraPorts.all(e, !self.ports.exists(p, p.name == e.name))",message="a service.extraPorts[].name is a name in spec.ports already; choose another"
// +kubebuilder:validation:XValidation:rule="!has(self.service) || !has(self.service.extraPorts) || has(self.podTemplate) || self.service.extraPorts.all(e, !has(e.targetPort) || type(e.targetPort) == int || (has(self.ports) && self.ports.exists(p, p.name == e.targetPort)) || (has(self.sidecars) && self.sidecars.exists(c, has(c.ports) && c.ports.exists(p, p.name == e.targetPort))))",message="a service.extraPorts[].targetPort names a port that no container has; add it to spec.ports or to spec.sidecars[].ports, or give the number"
// +kubebuilder:validation:XValidation:rule="!has(self.ingress) || (has(self.ports) && size(self.ports) > 0 && self.?service.?mode.orValue('Auto') != 'None')",message="an Ingress leads to the Service: add an entry to spec.ports, and do not set service.mode to None",fieldPath=".ingress"
// +kubebuilder:validation:XValidation:rule="!has(self.ingress) || [has(self.ports) ? self.ports.map(p, p.name) : []].all(names, self.ingress.hosts.all(h, !has(h.paths) || h.paths.all(p, !has(p.port) || p.port in names)))",message="an ingress path names a port that is not in spec.ports; add that port or correct the name",fieldPath=".ingress"
// +kubebuilder:validation:XValidation:rule="!has(self.httpRoute) || (has(self.ports) && size(self.ports) > 0 && self.?service.?mode.orValue('Auto') != 'None')",message="an HTTPRoute leads to the Service: add an entry to spec.ports, and do not set service.mode to None",fieldPath=".httpRoute"
// +kubebuilder:validation:XValidation:rule="!has(self.httpRoute) || !has(self.httpRoute.rules) || self.httpRoute.rules.all(r, (has(self.ports) && self.ports.exists(q, q.name == r.port)))",message="an httpRoute rule names a port that is not in spec.ports; add that port or correct the name",fieldPath=".httpRoute"
// +kubebuilder:validation:XValidation:rule="!has(self.networkPolicy) || !has(self.networkPolicy.ingress) || !has(self.networkPolicy.ingress.ports) || self.networkPolicy.ingress.ports.all(n, (has(self.ports) && self.ports.exists(q, q.name == n)))",message="networkPolicy.ingress.ports names a port that is not in spec.ports; add that port or correct the name",fieldPath=".networkPolicy"
// +kubebuilder:validation:XValidation:rule="!has(self.volumes) || !has(self.configFiles) || self.volumes.all(v, !self.configFiles.exists(f, f.name == v.name))",message="spec.volumes and spec.configFiles have an entry of the same name; rename one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.volumeMounts) || !has(self.configFiles) || self.volumeMounts.all(m, !self.configFiles.exists(f, f.mountPath == m.mountPath))",message="spec.volumeMounts and spec.configFiles have an entry of the same mountPath; move one of them"
// +kubebuilder:validation:XValidation:rule="has(self.podTemplate) || [(has(self.volumes) ? self.volumes.map(v, v.name) : []) + (has(self.configFiles) ? self.configFiles.map(f, f.name) : [])].all(names, (!has(self.volumeMounts) || self.volumeMounts.all(m, m.name in names)) && (!has(self.initContainers) || self.initContainers.all(c, !has(c.volumeMounts) || c.volumeMounts.all(m, m.name in names))) && (!has(self.sidecars) || self.sidecars.all(c, !has(c.volumeMounts) || c.volumeMounts.all(m, m.name in names))))",message="volumeMounts name a volume that is not in spec.volumes and spec.configFiles; add it or correct the name"
// +kubebuilder:validation:XValidation:rule="!has(self.initContainers) || !has(self.sidecars) || self.initContainers.all(c, !self.sidecars.exists(s, s.name == c.name))",message="spec.initContainers and spec.sidecars have an entry of the same name; rename one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.sidecars) || self.sidecars.all(c, !has(c.ports) || c.ports.all(p, (!has(self.ports) || !self.ports.exists(q, q.name == p.name)) && self.sidecars.exists_one(d, has(d.ports) && d.ports.exists(q, q.name == p.name))))",message="two containers have a port of the same name; rename one of them",fieldPath=".sidecars"
// +kubebuilder:validation:XValidation:rule="!has(self.minReadySeconds) || self.minReadySeconds < self.?progressDeadlineSeconds.orValue(600)",message="minReadySeconds must be less than progressDeadlineSeconds (600 when unset); lower it, or raise progressDeadlineSeconds",fieldPath=".minReadySeconds"
// +kubebuilder:validation:XValidation:rule="self.?dnsPolicy.orValue('Default') != 'None' || size(self.?dnsConfig.?nameservers.orValue([])) > 0",message="dnsPolicy None needs dnsConfig.nameservers; give at least one",fieldPath=".dnsPolicy"
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

	// workingDir is the directory in which the command starts; unset means the image's own.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	WorkingDir string `json:"workingDir,omitempty"`

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
	// +kubebuilder:validation:XValidation:rule="self.all(e, !has(e.valueFrom) || ((!has(e.value) || size(e.value) == 0) && [has(e.valueFrom.fieldRef), has(e.valueFrom.resourceFieldRef), has(e.valueFrom.configMapKeyRef), has(e.valueFrom.secretKeyRef), has(e.valueFrom.fileKeyRef)].filter(x, x).size() == 1))",message="an env entry has either value or valueFrom, and valueFrom has exactly one source; remove the others"
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`

	// envFrom takes environment variables from ConfigMaps and Secrets; later entries win, env wins over all.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(e, has(e.configMapRef) != has(e.secretRef) && size(e.?configMapRef.?name.orValue(e.?secretRef.?name.orValue(''))) > 0)",message="each envFrom entry needs the name of either a configMapRef or a secretRef"
	// +optional
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`

	// replicas is the number of Pods asked for. With autoscaling it is only where the number of Pods begins.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	// +kubebuilder:default=1
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// ports are the ports on which the application listens.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(p, self.exists_one(q, q.containerPort == p.containerPort && (has(q.protocol) ? q.protocol : 'TCP') == (has(p.protocol) ? p.protocol : 'TCP')))",message="two ports have the same containerPort and protocol; keep one of them (one port can serve several names only through service.ports)"
	// +optional
	Ports []AppPort `json:"ports,omitempty"`

	// resources are the container's resource requests and limits.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// livenessProbe restarts the container when it fails.
	// +kubebuilder:validation:XValidation:rule="[has(self.exec), has(self.httpGet), has(self.tcpSocket), has(self.grpc)].filter(x, x).size() == 1",message="a probe has exactly one of exec, httpGet, tcpSocket and grpc"
	// +kubebuilder:validation:XValidation:rule="(!has(self.httpGet) || type(self.httpGet.port) != int || (self.httpGet.port >= 1 && self.httpGet.port <= 65535)) && (!has(self.tcpSocket) || type(self.tcpSocket.port) != int || (self.tcpSocket.port >= 1 && self.tcpSocket.port <= 65535))",message="the port of a probe is a number from 1 to 65535, or the name of a port"
	// +kubebuilder:validation:XValidation:rule="self.?successThreshold.orValue(1) == 1",message="successThreshold of this probe can only be 1; remove it"
	// +optional
	LivenessProbe *corev1.Probe `json:"livenessProbe,omitempty"`

	// readinessProbe keeps the Pod out of the Service while it fails.
	// +kubebuilder:validation:XValidation:rule="[has(self.exec), has(self.httpGet), has(self.tcpSocket), has(self.grpc)].filter(x, x).size() == 1",message="a probe has exactly one of exec, httpGet, tcpSocket and grpc"
	// +kubebuilder:validation:XValidation:rule="(!has(self.httpGet) || type(self.httpGet.port) != int || (self.httpGet.port >= 1 && self.httpGet.port <= 65535)) && (!has(self.tcpSocket) || type(self.tcpSocket.port) != int || (self.tcpSocket.port >= 1 && self.tcpSocket.port <= 65535))",message="the port of a probe is a number from 1 to 65535, or the name of a port"
	// +optional
	ReadinessProbe *corev1.Probe `json:"readinessProbe,omitempty"`

	// startupProbe holds the two other probes back until it has succeeded once.
	// +kubebuilder:validation:XValidation:rule="[has(self.exec), has(self.httpGet), has(self.tcpSocket), has(self.grpc)].filter(x, x).size() == 1",message="a probe has exactly one of exec, httpGet, tcpSocket and grpc"
	// +kubebuilder:validation:XValidation:rule="(!has(self.httpGet) || type(self.httpGet.port) != int || (self.httpGet.port >= 1 && self.httpGet.port <= 65535)) && (!has(self.tcpSocket) || type(self.tcpSocket.port) != int || (self.tcpSocket.port >= 1 && self.tcpSocket.port <= 65535))",message="the port of a probe is a number from 1 to 65535, or the name of a port"
	// +kubebuilder:validation:XValidation:rule="self.?successThreshold.orValue(1) == 1",message="successThreshold of this probe can only be 1; remove it"
	// +optional
	StartupProbe *corev1.Probe `json:"startupProbe,omitempty"`

	// lifecycle hooks run after the container has started and before it is stopped.
	// +kubebuilder:validation:XValidation:rule="(!has(self.postStart) || [has(self.postStart.exec), has(self.postStart.httpGet), has(self.postStart.sleep)].filter(x, x).size() == 1) && (!has(self.preStop) || [has(self.preStop.exec), has(self.preStop.httpGet), has(self.preStop.sleep)].filter(x, x).size() == 1)",message="a hook has exactly one of exec, httpGet and sleep"
	// +kubebuilder:validation:XValidation:rule="(!has(self.postStart) || !has(self.postStart.httpGet) || type(self.postStart.httpGet.port) != int || (self.postStart.httpGet.port >= 1 && self.postStart.httpGet.port <= 65535)) && (!has(self.preStop) || !has(self.preStop.httpGet) || type(self.preStop.httpGet.port) != int || (self.preStop.httpGet.port >= 1 && self.preStop.httpGet.port <= 65535))",message="the port of a hook is a number from 1 to 65535, or the name of a port"
	// +optional
	Lifecycle *corev1.Lifecycle `json:"lifecycle,omitempty"`

	// securityContext of the application's container; what is not set here is as defaults.security says.
	// +kubebuilder:validation:XValidation:rule="!(self.?runAsNonRoot.orValue(false) && self.?runAsUser.orValue(1) == 0)",message="runAsUser 0 is root: choose another user, or set runAsNonRoot to false"
	// +kubebuilder:validation:XValidation:rule="!(self.?privileged.orValue(false) && !self.?allowPrivilegeEscalation.orValue(true))",message="a privileged container can escalate: remove allowPrivilegeEscalation, or privileged"
	// +optional
	SecurityContext *corev1.SecurityContext `json:"securityContext,omitempty"`

	// podSecurityContext holds for all containers; what is not set here is as defaults.security says.
	// +kubebuilder:validation:XValidation:rule="!(self.?runAsNonRoot.orValue(false) && self.?runAsUser.orValue(1) == 0)",message="runAsUser 0 is root: choose another user, or set runAsNonRoot to false"
	// +optional
	PodSecurityContext *corev1.PodSecurityContext `json:"podSecurityContext,omitempty"`

	// volumes of the Pods.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Volumes []AppVolume `json:"volumes,omitempty"`

	// volumeMounts mount volumes into the application's container.
	// +listType=map
	// +listMapKey=mountPath
	// +kubebuilder:validation:MaxItems=64
	// +optional
	VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitempty"`

	// configFiles mount ConfigMaps and Secrets as files into the application's container.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(f, self.exists_one(g, g.mountPath == f.mountPath))",message="two entries have the same mountPath; move one of them"
	// +optional
	ConfigFiles []AppConfigFiles `json:"configFiles,omitempty"`

	// initContainers run to their end, one after the other in this order, before the application starts and after the sidecars have
	// started, so that they can use them.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, !has(c.readinessProbe) && !has(c.startupProbe) && !has(c.ports))",message="an init container has no probes and ports; move it to spec.sidecars if it keeps running"
	// +optional
	InitContainers []AppContainer `json:"initContainers,omitempty"`

	// sidecars start one after the other in this order, before the init containers and the application, run as long as it does, and
	// stop after it in reverse order. An init container that a sidecar needs can be put before it by podTemplate with
	// $setElementOrder/initContainers.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Sidecars []AppContainer `json:"sidecars,omitempty"`

	// strategy says how old Pods are replaced by new ones; unset means RollingUpdate.
	// +kubebuilder:validation:XValidation:rule="self.?type.orValue('RollingUpdate') in ['RollingUpdate', 'Recreate']",message="type is RollingUpdate or Recreate"
	// +kubebuilder:validation:XValidation:rule="self.?type.orValue('RollingUpdate') != 'Recreate' || !has(self.rollingUpdate)",message="Recreate has no rollingUpdate; remove it, or set type to RollingUpdate"
	// +kubebuilder:validation:XValidation:rule="!has(self.rollingUpdate) || ((!has(self.rollingUpdate.maxSurge) || (type(self.rollingUpdate.maxSurge) == int ? self.rollingUpdate.maxSurge >= 0 && self.rollingUpdate.maxSurge <= 2147483647 : self.rollingUpdate.maxSurge.matches('^[0-9]+%$'))) && (!has(self.rollingUpdate.maxUnavailable) || (type(self.rollingUpdate.maxUnavailable) == int ? self.rollingUpdate.maxUnavailable >= 0 && self.rollingUpdate.maxUnavailable <= 2147483647 : self.rollingUpdate.maxUnavailable.matches('^(100|[0-9]{1,2})%$'))))",message="maxSurge and maxUnavailable are a number or a percentage, for example 1 or 25%; maxUnavailable at most 100%"
	// +kubebuilder:validation:XValidation:rule="!has(self.rollingUpdate) || !has(self.rollingUpdate.maxSurge) || !has(self.rollingUpdate.maxUnavailable) || !(type(self.rollingUpdate.maxSurge) == int ? self.rollingUpdate.maxSurge == 0 : self.rollingUpdate.maxSurge == '0%') || !(type(self.rollingUpdate.maxUnavailable) == int ? self.rollingUpdate.maxUnavailable == 0 : self.rollingUpdate.maxUnavailable == '0%')",message="maxSurge and maxUnavailable cannot both be 0: no Pod could be replaced"
	// +optional
	Strategy *appsv1.DeploymentStrategy `json:"strategy,omitempty"`

	// minReadySeconds is how long a Pod must be ready to count as available.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`

	// progressDeadlineSeconds is how long a rollout may make no progress before it counts as failed; unset means 600.
	// +kubebuilder:validation:Minimum=1
	// +optional
	ProgressDeadlineSeconds int32 `json:"progressDeadlineSeconds,omitempty"`

	// revisionHistoryLimit is the number of old ReplicaSets that are kept for a rollback; unset means 10.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// terminationGracePeriodSeconds is how long a Pod may take to stop; unset means 30.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`

	// affinity is an Affinity of the Pods' own API (kubectl explain pod.spec.affinity).
	// +kubebuilder:pruning:PreserveUnknownFields
	// +structType=atomic
	// +optional
	Affinity *runtime.RawExtension `json:"affinity,omitempty"`

	// nodeSelector chooses nodes by their labels.
	// +mapType=granular
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k).hasValue() && size(self[k]) <= 63)",message="each key must be a label key, for example example.com/tier, and each value at most 63 characters"
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations let the Pods run on nodes with matching taints.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.?operator.orValue('Equal') == 'Exists' ? t.?value.orValue('') == '' : t.?key.orValue('') != '')",message="operator Exists has no value, and any other needs a key; write {key: k, operator: Exists} or {key: k, value: v}"
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.?effect.orValue('') in ['', 'NoSchedule', 'PreferNoSchedule', 'NoExecute'] && (!has(t.tolerationSeconds) || t.?effect.orValue('') == 'NoExecute'))",message="effect is NoSchedule, PreferNoSchedule or NoExecute, and tolerationSeconds is for NoExecute only"
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// topologySpreadConstraints spread the Pods over zones, nodes and the like. A constraint without labelSelector counts the
	// App's own Pods. When there are none, defaults.topologySpread says what happens.
	// +listType=map
	// +listMapKey=topologyKey
	// +listMapKey=whenUnsatisfiable
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.maxSkew >= 1 && size(c.topologyKey) > 0 && c.whenUnsatisfiable in ['DoNotSchedule', 'ScheduleAnyway'])",message="a constraint has a maxSkew of at least 1, a topologyKey, and whenUnsatisfiable DoNotSchedule or ScheduleAnyway"
	// +kubebuilder:validation:XValidation:rule="self.all(c, !has(c.minDomains) || (c.minDomains >= 1 && c.whenUnsatisfiable == 'DoNotSchedule'))",message="minDomains is at least 1 and for whenUnsatisfiable DoNotSchedule only"
	// +optional
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// priorityClassName is the PriorityClass of the Pods.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="must be the name of a PriorityClass: lower-case letters, digits, dashes and dots"
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// runtimeClassName is the RuntimeClass of the Pods.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="must be the name of a RuntimeClass: lower-case letters, digits, dashes and dots"
	// +optional
	RuntimeClassName string `json:"runtimeClassName,omitempty"`

	// hostAliases are lines of the Pods' hosts file.
	// +listType=map
	// +listMapKey=ip
	// +kubebuilder:validation:MaxItems=64
	// +optional
	HostAliases []corev1.HostAlias `json:"hostAliases,omitempty"`

	// dnsPolicy of the Pods; unset means ClusterFirst.
	// +kubebuilder:validation:Enum=ClusterFirst;ClusterFirstWithHostNet;Default;None
	// +optional
	DNSPolicy corev1.DNSPolicy `json:"dnsPolicy,omitempty"`

	// dnsConfig adds to what dnsPolicy gives.
	// +optional
	DNSConfig *corev1.PodDNSConfig `json:"dnsConfig,omitempty"`

	// podLabels are added to the Pods only; a change of them replaces the Pods. The operator's own keys cannot be used.
	// +mapType=granular
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('quell.dev/') && !(k in ['app.kubernetes.io/name', 'app.kubernetes.io/instance', 'app.kubernetes.io/managed-by']))",message="app.kubernetes.io/name, app.kubernetes.io/instance, app.kubernetes.io/managed-by and quell.dev/ keys are set by the operator; use another key"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k).hasValue() && size(self[k]) <= 63)",message="each key must be a label key, for example example.com/tier, and each value at most 63 characters"
	// +optional
	PodLabels map[string]string `json:"podLabels,omitempty"`

	// podAnnotations are added to the Pods only; a change of them replaces the Pods.
	// +mapType=granular
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('quell.dev/') && k != 'kubectl.kubernetes.io/last-applied-configuration')",message="quell.dev/ and kubectl.kubernetes.io/last-applied-configuration annotations belong to the operator and kubectl; use another key"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k.lowerAscii()).hasValue())",message="each key must be an annotation key, for example example.com/owner"
	// +optional
	PodAnnotations map[string]string `json:"podAnnotations,omitempty"`

	// podTemplate is merged over the Pod template that the other fields make, as kubectl patch --type=strategic would, for
	// whatever has no field here; defaults fill in what neither says. Of the metadata it may have labels and annotations only,
	// and not those that the operator sets; container app stays.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +structType=atomic
	// +optional
	PodTemplate *runtime.RawExtension `json:"podTemplate,omitempty"`

	// defaults turns the operator's defaults for the Pods on and off.
	// +optional
	Defaults *AppDefaults `json:"defaults,omitempty"`

	// serviceAccount of the Pods; unset means the namespace's default.
	// +optional
	ServiceAccount *AppServiceAccount `json:"serviceAccount,omitempty"`

	// autoscaling makes a HorizontalPodAutoscaler.
	// +optional
	Autoscaling *AppAutoscaling `json:"autoscaling,omitempty"` //nolint:kubeapilinter // nil is none, as for its siblings

	// podDisruptionBudget makes a PodDisruptionBudget.
	// +optional
	PodDisruptionBudget *AppPodDisruptionBudget `json:"podDisruptionBudget,omitempty"`

	// service shapes the Service in front of the Pods. Without it an App with ports gets a ClusterIP Service on its container ports.
	// +optional
	Service *AppService `json:"service,omitempty"`

	// ingress makes an Ingress that leads to the Service.
	// +optional
	Ingress *AppIngress `json:"ingress,omitempty"` //nolint:kubeapilinter // nil is none, as for its siblings

	// httpRoute makes an HTTPRoute that leads to the Service; the cluster needs the Gateway API.
	// +optional
	HTTPRoute *AppHTTPRoute `json:"httpRoute,omitempty"` //nolint:kubeapilinter // nil is none, as for its siblings

	// networkPolicy makes a NetworkPolicy for the Pods.
	// +optional
	NetworkPolicy *AppNetworkPolicy `json:"networkPolicy,omitempty"`

	// commonLabels are added to every child and to the Pods. The operator's own keys cannot be used.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('quell.dev/') && !(k in ['app.kubernetes.io/name', 'app.kubernetes.io/instance', 'app.kubernetes.io/managed-by']))",message="app.kubernetes.io/name, app.kubernetes.io/instance, app.kubernetes.io/managed-by and quell.dev/ keys are set by the operator; use another key"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k).hasValue() && size(self[k]) <= 63)",message="each key must be a label key, for example example.com/tier, and each value at most 63 characters"
	// +optional
	CommonLabels map[string]string `json:"commonLabels,omitempty"`

	// commonAnnotations are added to every child and to the Pods. The operator's own keys cannot be used.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('quell.dev/') && !k.startsWith('deployment.kubernetes.io/') && k != 'kubectl.kubernetes.io/last-applied-configuration')",message="quell.dev/, deployment.kubernetes.io/ and kubectl.kubernetes.io/last-applied-configuration annotations belong to controllers and kubectl; use another key"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k.lowerAscii()).hasValue())",message="each key must be an annotation key, for example example.com/owner"
	// +optional
	CommonAnnotations map[string]string `json:"commonAnnotations,omitempty"`

	// conflictPolicy rules what happens when somebody else owns a field of a child that this App sets.
	// +optional
	ConflictPolicy *ConflictPolicy `json:"conflictPolicy,omitempty"`

	// suspend stops all writes to the children; they stay as they are, and the status goes on telling how they are.
	// +optional
	Suspend *bool `json:"suspend,omitempty"` //nolint:kubeapilinter // as in the API of Job and CronJob
}

// AppStatus is what the operator observed. It holds nothing that moves by itself: no time of the last reconcile, no counter.
type AppStatus struct {
	// observedGeneration is the metadata.generation that this status describes; -1 before there is a status, so that kstatus does
	// not take a new App for one that is done.
	// +kubebuilder:validation:Minimum=-1
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"` //nolint:kubeapilinter // no object has the generation 0

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

	// image is the image that the spec asks for.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Image string `json:"image,omitempty"`

	// rolledOutImage is the image of the application's container that the last complete rollout brought.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	RolledOutImage string `json:"rolledOutImage,omitempty"`

	// revision is the Deployment's revision, as kubectl rollout history counts.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// rendering is the form in which the operator renders the Pods. It stays what it was when the App was first reconciled, so
	// that a new release of the operator replaces no Pods.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Rendering int32 `json:"rendering,omitempty"`

	// operatorVersion is the version of the operator that wrote this status.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	OperatorVersion string `json:"operatorVersion,omitempty"`

	// url is where the App is reached from outside the cluster, or else from within it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +optional
	URL string `json:"url,omitempty"`

	// endpoints are all the places where the App is reached.
	// +listType=map
	// +listMapKey=uri
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Endpoints []AppEndpoint `json:"endpoints,omitempty"`

	// children are the objects that the App has made, and how they are.
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Children []AppChild `json:"children,omitempty"`

	// conflicts are fields of the children that somebody else owns although the App sets them, at most 32.
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=path
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Conflicts []FieldConflict `json:"conflicts,omitempty"`

	// conditions are Ready, Available, Progressing; Reconciling, Stalled and FieldConflict only while true; AutoscalingActive
	// only with an autoscaler. Other types belong to other controllers.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// EndpointScope says from where an endpoint is reached.
// +kubebuilder:validation:Enum=Internal;External
type EndpointScope string

// The scopes of endpoints.
const (
	// EndpointInternal: from within the cluster.
	EndpointInternal EndpointScope = "Internal"
	// EndpointExternal: from outside the cluster.
	EndpointExternal EndpointScope = "External"
)

// AppEndpoint is one place where the App is reached.
// +structType=granular
type AppEndpoint struct {
	// uri of the endpoint, for example https://shop.example.com/ or tcp://shop.team-a.svc:5432.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +required
	URI string `json:"uri,omitempty"`

	// scope says from where it is reached.
	// +required
	Scope EndpointScope `json:"scope,omitempty"`
}

// AppChild is one object that the App has made.
// +structType=granular
type AppChild struct {
	// kind of the child.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind,omitempty"`

	// name of the child.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name,omitempty"`

	// ready tells whether the child does what it is for: True, False, or Unknown while its controller has not said.
	// +kubebuilder:validation:Enum=True;False;Unknown
	// +required
	Ready metav1.ConditionStatus `json:"ready,omitempty"`

	// reason says in one word why.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Reason string `json:"reason,omitempty"`

	// generation of the child at which this was found; a later one in which it is still so is no news. Absent for a child that does
	// not exist or has no generation.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Generation int64 `json:"generation,omitempty"`
}

// App is one Deployment-based application: the operator applies its Deployment, Service and whatever else the spec asks for, and reflects their state here.
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
	// +kubebuilder:default={"observedGeneration":-1}
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
