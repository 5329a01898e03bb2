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
			deployment: `{apiVersion: apps/v1, kind: Deployment, metadata: ` + fmt.Sprintf(childMeta, "", "") + `, spec: {replicas: 1, selector: {matchLabels: ` + selector + `},
				template: {metadata: {labels: {app.kubernetes.io/name: shop, app.kubernetes.io/instance: shop, app.kubernetes.io/managed-by: quell}}, spec: {containers: [{name: app, image: "shop:1"}]}}}}`,
		},
		"an App with everything": {
			app: shop(withEverything),
			deployment: `{apiVersion: apps/v1, kind: Deployment, metadata: ` + fmt.Sprintf(childMeta, ", team: a", `, annotations: {note: ""}`) + `, spec: {replicas: 2, selector: {matchLabels: ` + selector + `},
				template: {metadata: {labels: {app.kubernetes.io/name: shop, app.kubernetes.io/instance: shop, app.kubernetes.io/managed-by: quell, team: a}, annotations: {note: ""}}, spec: {
				imagePullSecrets: [{name: registry}], containers: [{name: app, image: "shop:1", imagePullPolicy: Always, command: [/shop], args: [serve],
				env: [{name: EMPTY}, {name: A, value: "1"}, {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}], envFrom: [{configMapRef: {name: c}}],
				ports: [{name: http, containerPort: 8080, protocol: TCP}, {name: dns, containerPort: 53, protocol: UDP}],
				resources: {requests: {cpu: 100m}}, readinessProbe: {httpGet: {path: /, port: http}}}]}}}}`,
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
			children := desiredChildren(observed{app: c.app})
			g.Expect(children).To(HaveLen(2))
			if c.deployment != "" {
				g.Expect(asJSON(g, children[0].desired)).To(MatchYAML(c.deployment))
			}
			if c.service == "" {
				g.Expect(children[1].desired).To(BeNil())
			} else {
				g.Expect(asJSON(g, children[1].desired)).To(MatchYAML(c.service))
			}
		})
	}
}

func TestTheOrderOfMapsDoesNotMatter(t *testing.T) {
	g := NewWithT(t)
	forms := map[string]bool{}
	for range 1000 {
		app := shop(withEverything)
		app.Spec.CommonLabels = shuffled("label", 20)
		app.Spec.CommonAnnotations = shuffled("annotation", 20)
		children := desiredChildren(observed{app: app})
		status := desiredStatus(observed{app: app, live: map[string]client.Object{kindDeployment: running(app)}}, nil)
		forms[asJSON(g, children[0].desired)+asJSON(g, children[1].desired)+asJSON(g, status)] = true
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
