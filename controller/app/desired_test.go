package app

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// shop is the App of these tests.
func shop(change ...func(*quellv1alpha1.App)) *quellv1alpha1.App {
	replicas := int32(2)
	app := &quellv1alpha1.App{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop", UID: "uid-1", Generation: 3, ResourceVersion: "10"},
		Spec:       quellv1alpha1.AppSpec{Image: "shop:1", Replicas: &replicas},
	}
	for _, f := range change {
		f(app)
	}
	return app
}

func withPorts(app *quellv1alpha1.App) {
	app.Spec.Ports = []quellv1alpha1.AppPort{
		{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP},
		{Name: "dns", ContainerPort: 53, Protocol: corev1.ProtocolUDP},
	}
}

func withEverything(app *quellv1alpha1.App) {
	withPorts(app)
	app.Spec.ImagePullPolicy = corev1.PullAlways
	app.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
	app.Spec.Command, app.Spec.Args = []string{"/shop"}, []string{"serve"}
	app.Spec.Env = []corev1.EnvVar{{Name: "EMPTY"}, {Name: "A", Value: "1"}, {Name: "NODE", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"},
	}}}
	app.Spec.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}}}}
	app.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("0.1")}}
	app.Spec.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromString("http")}}}
	app.Spec.Service = &quellv1alpha1.AppService{Type: corev1.ServiceTypeNodePort, Ports: []quellv1alpha1.AppServicePort{{Name: "http", Port: 80}}}
	app.Spec.CommonLabels = map[string]string{"team": "a", LabelName: "not this"}
	app.Spec.CommonAnnotations = map[string]string{"note": ""}
}

const (
	childMeta = `{name: shop, namespace: team, labels: {app.kubernetes.io/name: shop, app.kubernetes.io/instance: shop, app.kubernetes.io/managed-by: quell%s}%s,
		ownerReferences: [{apiVersion: quell.dev/v1alpha1, kind: App, name: shop, uid: uid-1, controller: true, blockOwnerDeletion: true}]}`
	selector = `{app.kubernetes.io/name: shop, app.kubernetes.io/instance: shop}`
)

func TestDesiredChildrenAreExactly(t *testing.T) {
	for name, c := range map[string]struct {
		app                 *quellv1alpha1.App
		deployment, service string
	}{
		"a minimal App": {
			app: shop(func(app *quellv1alpha1.App) { app.Spec.Replicas = nil }),
			deployment: `{apiVersion: apps/v1, kind: Deployment, metadata: ` + fmt.Sprintf(childMeta, "", `, annotations: {quell.dev/rendering: "2"}`) + `, spec: {replicas: 1, selector: {matchLabels: ` + selector + `},
				strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 25%}},
				template: {metadata: {labels: {app.kubernetes.io/name: shop, app.kubernetes.io/instance: shop, app.kubernetes.io/managed-by: quell}}, spec: {
				securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}},
				containers: [{name: app, image: "shop:1", securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}],
				topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: ` + selector + `}},
				{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: ` + selector + `}}]}}}}`,
		},
		"an App with ports": {
			app: shop(withEverything),
			service: `{apiVersion: v1, kind: Service, metadata: ` + fmt.Sprintf(childMeta, ", team: a", `, annotations: {note: ""}`) + `, spec: {type: NodePort, selector: ` + selector + `,
				ports: [{name: http, port: 80, protocol: TCP, targetPort: http}, {name: dns, port: 53, protocol: UDP, targetPort: dns}]}}`,
		},
		"a Service without a type": {
			app: shop(withPorts, func(app *quellv1alpha1.App) { app.Spec.Service = &quellv1alpha1.AppService{} }),
			service: `{apiVersion: v1, kind: Service, metadata: ` + fmt.Sprintf(childMeta, "", "") + `, spec: {type: ClusterIP, selector: ` + selector + `,
				ports: [{name: http, port: 8080, protocol: TCP, targetPort: http}, {name: dns, port: 53, protocol: UDP, targetPort: dns}]}}`,
		},
		"no Service when it is off": {
			app: shop(withPorts, func(app *quellv1alpha1.App) {
				app.Spec.Service = &quellv1alpha1.AppService{Mode: quellv1alpha1.ServiceNone}
			}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			if c.deployment != "" {
				g.Expect(asJSON(g, desiredOf(g, c.app, kindDeployment))).To(MatchYAML(c.deployment))
			}
			if c.service == "" {
				g.Expect(desiredOf(g, c.app, kindService)).To(BeNil())
			} else {
				g.Expect(asJSON(g, desiredOf(g, c.app, kindService))).To(MatchYAML(c.service))
			}
		})
	}
}

// desiredOf is what an App wants of one kind, nil when it wants none.
func desiredOf(g Gomega, app *quellv1alpha1.App, kind string) runtime.ApplyConfiguration {
	for _, c := range desiredChildren(observed{app: app}) {
		if c.kind == kind {
			g.Expect(c.invalid).NotTo(HaveOccurred())
			return c.desired
		}
	}
	return nil
}

func TestTheOrderOfMapsDoesNotMatter(t *testing.T) {
	g := NewWithT(t)
	forms := map[string]bool{}
	for range 1000 {
		app := shop(withEverything)
		app.Spec.CommonLabels = shuffled("label", 20)
		app.Spec.CommonAnnotations = shuffled("annotation", 20)
		status := desiredStatus(observed{app: app, live: map[string]client.Object{kindDeployment: running(app)}}, nil)
		app.Spec.PodLabels, app.Spec.PodAnnotations, app.Spec.NodeSelector = shuffled("pod", 20), shuffled("note", 20), shuffled("node", 20)
		form := asJSON(g, status)
		for _, c := range desiredChildren(observed{app: app}) {
			form += asJSON(g, c.desired)
		}
		forms[form] = true
	}
	g.Expect(forms).To(HaveLen(1))
}

// shuffled is one and the same map, filled in another order each time.
func shuffled(prefix string, n int) map[string]string {
	m := map[string]string{}
	for _, i := range rand.Perm(n) {
		m[fmt.Sprint(prefix, i)] = fmt.Sprint(i)
	}
	return m
}

func asJSON(g Gomega, value any) string {
	raw, err := json.Marshal(value)
	g.Expect(err).NotTo(HaveOccurred())
	return string(raw)
}
