package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ServiceMode says whether the App has a Service, and of which form.
// +kubebuilder:validation:Enum=Auto;Headless;None
type ServiceMode string

// The modes of an App's Service.
const (
	// ServiceAuto makes a Service when the App has ports.
	ServiceAuto ServiceMode = "Auto"
	// ServiceHeadless makes a Service without a cluster IP: its DNS name leads to the Pods themselves.
	ServiceHeadless ServiceMode = "Headless"
	// ServiceNone makes no Service.
	ServiceNone ServiceMode = "None"
)

// AppService shapes the Service of an App.
// +structType=granular
// +kubebuilder:validation:XValidation:rule="!has(self.mode) || self.mode != 'Headless' || !has(self.type) || self.type == 'ClusterIP'",message="a headless Service has type ClusterIP; remove type, or set mode to Auto"
// +kubebuilder:validation:XValidation:rule="!has(self.externalTrafficPolicy) || (has(self.type) && self.type in ['NodePort', 'LoadBalancer'])",message="externalTrafficPolicy is for type NodePort or LoadBalancer; set that type, or remove it"
type AppService struct {
	// mode None turns the Service off, Headless makes one without a cluster IP; Auto, the default, makes one when the App has ports.
	// +optional
	Mode ServiceMode `json:"mode,omitempty"`

	// type is the Service's type; unset means ClusterIP.
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
	// +optional
	Type corev1.ServiceType `json:"type,omitempty"`

	// annotations of the Service, for example of a cloud provider's load balancer.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k.lowerAscii()).hasValue() && !k.startsWith('quell.dev/') && k != 'kubectl.kubernetes.io/last-applied-configuration')",message="each key must be an annotation key, for example example.com/owner; quell.dev/ and kubectl.kubernetes.io/last-applied-configuration belong to the operator and kubectl"
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// sessionAffinity ClientIP sends a client to the same Pod each time; unset means None.
	// +kubebuilder:validation:Enum=None;ClientIP
	// +optional
	SessionAffinity corev1.ServiceAffinity `json:"sessionAffinity,omitempty"`

	// externalTrafficPolicy Local keeps the client's address and sends traffic only to Pods of the node that it reached.
	// +kubebuilder:validation:Enum=Cluster;Local
	// +optional
	ExternalTrafficPolicy corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty"`

	// internalTrafficPolicy Local sends traffic from within the cluster only to Pods of the same node.
	// +kubebuilder:validation:Enum=Cluster;Local
	// +optional
	InternalTrafficPolicy corev1.ServiceInternalTrafficPolicy `json:"internalTrafficPolicy,omitempty"`

	// trafficDistribution prefers near Pods, for example PreferSameZone.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self in ['PreferClose', 'PreferSameZone', 'PreferSameNode']",message="must be PreferSameZone, PreferSameNode or PreferClose"
	// +optional
	TrafficDistribution string `json:"trafficDistribution,omitempty"`

	// ports maps App ports to other Service port numbers; a port that is not listed keeps its containerPort.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Ports []AppServicePort `json:"ports,omitempty"`

	// extraPorts are Service ports beside those of spec.ports, for example those of a sidecar.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +optional
	ExtraPorts []AppExtraPort `json:"extraPorts,omitempty"`
}

// AppServicePort maps one App port to a Service port.
// +structType=granular
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

// AppExtraPort is a Service port that leads to another port than those of spec.ports.
// +structType=granular
type AppExtraPort struct {
	// name of the Service port.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower-case letters, digits and dashes, for example metrics"
	// +required
	Name string `json:"name,omitempty"`

	// port is the number on which the Service listens.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +required
	Port int32 `json:"port,omitempty"`

	// targetPort is the number or name of the port of the Pod; unset means port.
	// +kubebuilder:validation:XValidation:rule="type(self) != int || (self >= 1 && self <= 65535)",message="must be a number from 1 to 65535 or the name of a container's port"
	// +optional
	TargetPort *intstr.IntOrString `json:"targetPort,omitempty"`

	// protocol is the port's transport protocol; unset means TCP.
	// +kubebuilder:validation:Enum=TCP;UDP;SCTP
	// +optional
	Protocol corev1.Protocol `json:"protocol,omitempty"`
}

// AppIngress is the Ingress of an App.
// +structType=granular
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || [self.hosts.map(x, x.host)].all(names, self.tls.all(t, !has(t.hosts) || t.hosts.all(h, h.startsWith('*.') || h in names)))",message="tls names a host that is not in hosts; add it there, or correct the name"
type AppIngress struct {
	// className is the IngressClass; unset means the cluster's default.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="must be the name of an IngressClass: lower-case letters, digits, dashes and dots"
	// +optional
	ClassName string `json:"className,omitempty"`

	// annotations of the Ingress, for its controller.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k.lowerAscii()).hasValue() && !k.startsWith('quell.dev/') && k != 'kubectl.kubernetes.io/last-applied-configuration')",message="each key must be an annotation key, for example example.com/owner; quell.dev/ and kubectl.kubernetes.io/last-applied-configuration belong to the operator and kubectl"
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// hosts are the names under which the App is served.
	// +listType=map
	// +listMapKey=host
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +required
	Hosts []AppIngressHost `json:"hosts,omitempty"`

	// tls names the certificates of hosts.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	TLS []AppIngressTLS `json:"tls,omitempty"` //nolint:kubeapilinter // each of its fields may be left out, as in Ingress
}

// AppIngressTLS is one certificate.
// +structType=granular
type AppIngressTLS struct {
	// secretName is the Secret with the certificate; unset leaves the choice to the Ingress controller.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="must be the name of a Secret: lower-case letters, digits, dashes and dots"
	// +optional
	SecretName string `json:"secretName,omitempty"`

	// hosts that the certificate is for, each one of ingress.hosts or a *. pattern; none means all.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	Hosts []string `json:"hosts,omitempty"`
}

// AppIngressHost is one name under which the App is served.
// +structType=granular
type AppIngressHost struct {
	// host is a DNS name, which may begin with *. for any one label.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([*][.])?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be a DNS name, for example shop.example.com or *.example.com"
	// +kubebuilder:validation:XValidation:rule="!isIP(self)",message="must be a DNS name, not an address"
	// +required
	Host string `json:"host,omitempty"`

	// paths that lead to the App; none means every path.
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Paths []AppIngressPath `json:"paths,omitempty"`
}

// AppIngressPath is one path of a host.
// +structType=granular
// +kubebuilder:validation:XValidation:rule="self.?pathType.orValue('Prefix') == 'ImplementationSpecific' || !self.path.matches('/(/|[.][.]?(/|$))')",message="a path must not contain //, /./ or /../; correct it, or set pathType to ImplementationSpecific"
type AppIngressPath struct {
	// path begins with a slash.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/')",message="must begin with a slash"
	// +required
	Path string `json:"path,omitempty"`

	// pathType says how path is compared; unset means Prefix.
	// +kubebuilder:validation:Enum=Exact;Prefix;ImplementationSpecific
	// +optional
	PathType networkingv1.PathType `json:"pathType,omitempty"`

	// port is the name of an entry in spec.ports; unset means the first.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	// +optional
	Port string `json:"port,omitempty"`
}

// AppHTTPRoute is the HTTPRoute of an App, where the cluster has the Gateway API.
// +structType=granular
type AppHTTPRoute struct {
	// annotations of the HTTPRoute.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k.lowerAscii()).hasValue() && !k.startsWith('quell.dev/') && k != 'kubectl.kubernetes.io/last-applied-configuration')",message="each key must be an annotation key, for example example.com/owner; quell.dev/ and kubectl.kubernetes.io/last-applied-configuration belong to the operator and kubectl"
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// parentRefs are the Gateways to which the route attaches.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(p, self.exists_one(q, q.name == p.name && has(q.__namespace__) == has(p.__namespace__) && (!has(q.__namespace__) || q.__namespace__ == p.__namespace__) && has(q.sectionName) == has(p.sectionName) && (!has(q.sectionName) || q.sectionName == p.sectionName)))",message="two entries name the same Gateway; remove one, or give each another sectionName"
	// +required
	ParentRefs []AppRouteParent `json:"parentRefs,omitempty"`

	// hostnames under which the App is served; none means those of the Gateway.
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.all(h, h.matches('^([*][.])?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$') && !isIP(h))",message="each must be a DNS name, for example shop.example.com or *.example.com"
	// +optional
	Hostnames []string `json:"hostnames,omitempty"`

	// rules choose requests; none means every request goes to the first port.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Rules []AppRouteRule `json:"rules,omitempty"`
}

// AppRouteParent names a Gateway.
// +structType=granular
type AppRouteParent struct {
	// name of the Gateway.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="must be the name of a Gateway: lower-case letters, digits, dashes and dots"
	// +required
	Name string `json:"name,omitempty"`

	// namespace of the Gateway; unset means the App's.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a namespace: lower-case letters, digits and dashes"
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// sectionName is a listener of the Gateway.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="must be the name of a listener: lower-case letters, digits, dashes and dots"
	// +optional
	SectionName string `json:"sectionName,omitempty"`
}

// AppRouteRule sends the requests that it matches to a port of the App.
// +structType=granular
type AppRouteRule struct {
	// matches are alternatives; none means every request.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Matches []AppRouteMatch `json:"matches,omitempty"` //nolint:kubeapilinter // a rule of the type asks for one of its fields

	// port is the name of an entry in spec.ports.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	// +required
	Port string `json:"port,omitempty"`
}

// AppRouteMatch is fulfilled when all that it says is.
// +structType=granular
// +kubebuilder:validation:XValidation:rule="has(self.path) || has(self.method) || has(self.headers)",message="a match says at least one of path, method and headers"
// +kubebuilder:validation:XValidation:rule="has(self.path) || !has(self.pathType)",message="pathType is for a path; give the path, or remove pathType"
// +kubebuilder:validation:XValidation:rule="!has(self.path) || !self.path.matches('/(/|[.][.]?(/|$))')",message="a path must not contain //, /./ or /../"
type AppRouteMatch struct {
	// path begins with a slash.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/')",message="must begin with a slash"
	// +optional
	Path string `json:"path,omitempty"`

	// pathType says how path is compared; unset means PathPrefix.
	// +kubebuilder:validation:Enum=Exact;PathPrefix
	// +optional
	PathType string `json:"pathType,omitempty"`

	// method is an HTTP method.
	// +kubebuilder:validation:Enum=GET;HEAD;POST;PUT;DELETE;CONNECT;OPTIONS;TRACE;PATCH
	// +optional
	Method string `json:"method,omitempty"`

	// headers and their values, all of which are needed.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Headers []AppRouteHeader `json:"headers,omitempty"`
}

// AppRouteHeader is an HTTP header and its exact value.
// +structType=granular
type AppRouteHeader struct {
	// name of the header.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-A-Za-z0-9!#$%&*+.^_|~]+$')",message="must be the name of an HTTP header, for example X-Version"
	// +required
	Name string `json:"name,omitempty"`

	// value of the header.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +required
	Value string `json:"value,omitempty"`
}

// AppNetworkPolicy is the NetworkPolicy of an App. A direction that is not given is not restricted.
// +structType=granular
// +kubebuilder:validation:XValidation:rule="has(self.ingress) || has(self.egress)",message="give ingress, egress or both; a direction that is not given is not restricted"
type AppNetworkPolicy struct {
	// ingress says from whom traffic to the App is accepted.
	// +optional
	Ingress *AppNetworkIngress `json:"ingress,omitempty"`

	// egress says to whom the App may send; DNS is always allowed.
	// +optional
	Egress *AppNetworkEgress `json:"egress,omitempty"`
}

// AppNetworkIngress restricts traffic to the App.
// +structType=granular
// +kubebuilder:validation:XValidation:rule="!has(self.ports) || size(self.ports) == 0 || (has(self.from) && size(self.from) > 0)",message="ports without from let nobody in: say who may reach them, for example namespaceSelector {} for everybody in the cluster"
type AppNetworkIngress struct {
	// from are those whose traffic is accepted; empty means nobody.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	From []AppNetworkPeer `json:"from,omitempty"` //nolint:kubeapilinter // a rule of the type asks for one of its fields

	// ports are names of entries in spec.ports that can be reached; empty means every port.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=15
	// +optional
	Ports []string `json:"ports,omitempty"`
}

// AppNetworkEgress restricts traffic from the App.
// +structType=granular
type AppNetworkEgress struct {
	// to are those to whom the App may send; empty means nobody but DNS.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	To []AppNetworkPeer `json:"to,omitempty"` //nolint:kubeapilinter // a rule of the type asks for one of its fields
}

// AppNetworkPeer is somebody with whom the App talks: an App, everybody in chosen namespaces, or addresses.
// +structType=granular
// +kubebuilder:validation:XValidation:rule="has(self.cidr) != (has(self.app) || has(self.namespace) || has(self.namespaceSelector))",message="a peer is either a cidr, or an app, a namespace or namespaceSelector (an app may be narrowed by one of the two)"
// +kubebuilder:validation:XValidation:rule="!has(self.namespace) || !has(self.namespaceSelector)",message="give either namespace or namespaceSelector"
type AppNetworkPeer struct {
	// app is the name of an App, of this namespace unless namespace or namespaceSelector says another.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of an App: lower-case letters, digits and dashes"
	// +optional
	App string `json:"app,omitempty"`

	// namespace is the name of a namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a namespace: lower-case letters, digits and dashes"
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// namespaceSelector chooses namespaces by their labels.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// cidr are addresses, for example 10.0.0.0/8.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=49
	// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="must be a range of addresses, for example 10.0.0.0/8"
	// +optional
	CIDR string `json:"cidr,omitempty"`
}
