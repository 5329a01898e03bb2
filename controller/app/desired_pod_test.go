package app

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/ssa"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// elsewhere are the fields of an App that do not shape its Deployment.
var elsewhere = []string{"autoscaling", "podDisruptionBudget", "service", "ingress", "httpRoute", "networkPolicy", "conflictPolicy", "suspend"}

func TestDeploymentOfAnAppWithEverythingIsExactly(t *testing.T) {
	g := NewWithT(t)
	app := readApp(g, "everything")
	given, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&app.Spec)
	g.Expect(err).NotTo(HaveOccurred())
	var fields []string
	for f := range reflect.TypeFor[quellv1alpha1.AppSpec]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields = append(fields, name)
	}
	g.Expect(slices.Collect(maps.Keys(given))).To(ConsistOf(slices.DeleteFunc(fields, func(f string) bool { return slices.Contains(elsewhere, f) })))

	desired, err := desiredDeployment(observed{app: app, configHash: "12ab"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(asJSON(g, desired)).To(MatchYAML(read(g, "everything", "deployment")))
}

func TestTheAppIsNotChangedByItsPods(t *testing.T) {
	g := NewWithT(t)
	app := readApp(g, "everything")
	before := app.DeepCopy()
	_, err := desiredDeployment(observed{app: app})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(app).To(Equal(before))
}

func TestThingsOfOneNameAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		spec    string
		message string
	}{
		"volumes": {
			`{volumes: [{name: a, emptyDir: {}}], configFiles: [{name: a, mountPath: /a, configMap: c}]}`,
			`spec.volumes and spec.configFiles would both be volume "a": rename one of them`,
		},
		"an init container and a sidecar": {
			`{initContainers: [{name: a, image: i}], sidecars: [{name: a, image: i}]}`,
			`spec.sidecars and spec.initContainers would both be container "a": rename one of them`,
		},
		"a sidecar and the application": {
			`{sidecars: [{name: app, image: i}]}`,
			`the application's own container and spec.sidecars would both be container "app": rename one of them`,
		},
		"mounts in one place": {
			`{volumeMounts: [{name: v, mountPath: /etc/app}], configFiles: [{name: a, mountPath: /etc/app/, configMap: c}]}`,
			`spec.volumeMounts "v" and spec.configFiles "a" would both be mounted at /etc/app: give one of them another mountPath`,
		},
		"config files in one place": {
			`{configFiles: [{name: a, mountPath: /etc/app, configMap: c}, {name: b, mountPath: /etc/app, secret: s}]}`,
			`spec.configFiles "a" and spec.configFiles "b" would both be mounted at /etc/app: give one of them another mountPath`,
		},
		"a container of the overlay and a sidecar": {
			`{sidecars: [{name: a, image: i}], podTemplate: {spec: {containers: [{name: a, image: i}]}}}`,
			`spec.sidecars and spec.podTemplate.spec.containers would both be container "a": rename one of them`,
		},
		"an init container of the overlay and the application": {
			`{podTemplate: {spec: {initContainers: [{name: app, image: i}]}}}`,
			`the application's own container and spec.podTemplate.spec.initContainers would both be container "app": rename one of them`,
		},
		"a volume of the overlay and a config file": {
			`{configFiles: [{name: a, mountPath: /a, configMap: c}], podTemplate: {spec: {volumes: [{name: a, emptyDir: {}}]}}}`,
			`spec.configFiles and spec.podTemplate would both give volume "a" a source (configMap, emptyDir): rename one of them`,
		},
		"a volume of the overlay and one of the App": {
			`{volumes: [{name: a, emptyDir: {}}], podTemplate: {spec: {volumes: [{name: a, nfs: {server: s, path: /}}]}}}`,
			`spec.volumes and spec.podTemplate would both give volume "a" a source (emptyDir, nfs): rename one of them`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := desiredDeployment(observed{app: appOf(g, c.spec)})
			g.Expect(err).To(MatchError(c.message))
			g.Expect(err).To(BeAssignableToTypeOf(&ssa.InvalidContentError{}))
		})
	}
}

func TestAffinityIsDecodedStrictly(t *testing.T) {
	for affinity, message := range map[string]string{
		`{nodeAffinty: {}}`: `unknown field "spec.affinity.nodeAffinty"`,
		`{podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologykey: z}}], x: 1}}`: `unknown field "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.topologykey"; unknown field "spec.affinity.podAffinity.x"`,
		`{nodeAffinity: []}`: `spec.affinity.nodeAffinity: must be an object, is array`,
		`{podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: heavy}]}}`: `spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: must be a whole number, is string`,
	} {
		g := NewWithT(t)
		_, err := desiredDeployment(observed{app: appOf(g, `{affinity: `+affinity+`}`)})
		g.Expect(err).To(MatchError(message))
		g.Expect(err).To(BeAssignableToTypeOf(&ssa.InvalidContentError{}))
	}
}

func TestServiceAccountOfThePods(t *testing.T) {
	for spec, name := range map[string]string{
		`{}`:                               "",
		`{serviceAccount: {create: true}}`: "shop",
		`{serviceAccount: {create: true, name: mine}}`: "mine",
		`{serviceAccount: {name: theirs}}`:             "theirs",
	} {
		g := NewWithT(t)
		pod := podOf(g, observed{app: appOf(g, spec)})
		g.Expect(pod.ServiceAccountName).To(Equal(name), spec)
		g.Expect(pod.DeprecatedServiceAccount).To(Equal(name), spec)
	}
}

func TestLabelsOfThePods(t *testing.T) {
	g := NewWithT(t)
	app := shop(func(app *quellv1alpha1.App) {
		app.Spec.CommonLabels = map[string]string{"a": "common", "b": "common", LabelManagedBy: "x"}
		app.Spec.PodLabels = map[string]string{"b": "pod", LabelName: "x", LabelManagedBy: "x"}
	})
	g.Expect(podLabels(app)).To(Equal(map[string]string{"a": "common", "b": "pod", LabelName: "shop", LabelInstance: "shop", LabelManagedBy: ManagedBy}))
}

func TestTheStrategyIsAlwaysStated(t *testing.T) {
	const usual, other = `{type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 25%}}`, `{type: RollingUpdate, rollingUpdate: {maxSurge: 9}}`
	owned := metav1.ManagedFieldsEntry{
		Manager: ChildManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:spec": {"f:strategy": {"f:rollingUpdate": {"f:maxSurge": {}}}}}`),
	}
	for _, c := range []struct{ asked, live, want string }{
		{`{}`, ``, usual},
		{`{}`, other, usual},
		{`{strategy: {}}`, ``, usual},
		{`{strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 0}}}`, ``, `{type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 0}}`},
		{`{strategy: {type: Recreate}}`, ``, `{type: Recreate}`},
		{`{strategy: {type: Recreate}}`, `{type: Recreate}`, `{type: Recreate}`},
		{`{strategy: {type: Recreate}}`, other, other},
	} {
		g := NewWithT(t)
		var live *appsv1.Deployment
		if c.live != "" {
			live = &appsv1.Deployment{}
			g.Expect(yaml.UnmarshalStrict([]byte(c.live), &live.Spec.Strategy)).To(Succeed())
		}
		asked := appOf(g, c.asked).Spec.Strategy
		g.Expect(asJSON(g, desiredStrategy(asked, live))).To(MatchYAML(c.want), "%+v", c)
		if live != nil && c.want == other {
			live.ManagedFields = []metav1.ManagedFieldsEntry{owned}
			g.Expect(desiredStrategy(asked, live)).To(Equal(*asked))
		}
	}
}

func TestSpreadCountsTheAppsPods(t *testing.T) {
	g := NewWithT(t)
	own := &metav1.LabelSelector{MatchLabels: map[string]string{LabelName: "shop", LabelInstance: "shop"}}
	both := []corev1.TopologySpreadConstraint{
		{MaxSkew: 1, TopologyKey: "topology.kubernetes.io/zone", WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: own},
		{MaxSkew: 1, TopologyKey: "kubernetes.io/hostname", WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: own},
	}
	for spec, want := range map[string][]corev1.TopologySpreadConstraint{
		`{}`:                                 both,
		`{defaults: {security: None}}`:       both,
		`{defaults: {topologySpread: None}}`: nil,
		`{topologySpreadConstraints: [{maxSkew: 3, topologyKey: rack, whenUnsatisfiable: DoNotSchedule}]}`: {
			{MaxSkew: 3, TopologyKey: "rack", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: own},
		},
		`{podTemplate: {spec: {topologySpreadConstraints: [{maxSkew: 3, topologyKey: rack, whenUnsatisfiable: DoNotSchedule}]}}}`: {
			{MaxSkew: 3, TopologyKey: "rack", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: own},
		},
	} {
		g.Expect(podOf(g, observed{app: appOf(g, spec)}).TopologySpreadConstraints).To(Equal(want), spec)
	}
}

// readApp reads the App of a folder of testdata.
func readApp(g Gomega, folder string) *quellv1alpha1.App {
	app := &quellv1alpha1.App{}
	g.Expect(yaml.UnmarshalStrict(read(g, folder, "app"), app)).To(Succeed())
	return app
}

func read(g Gomega, folder, name string) []byte {
	raw, err := os.ReadFile(filepath.Join("testdata", folder, name+".yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	return raw
}

// appOf is a new App with a spec in YAML; the image may be left out.
func appOf(g Gomega, spec string) *quellv1alpha1.App {
	app := shop()
	g.Expect(yaml.UnmarshalStrict([]byte(spec), &app.Spec)).To(Succeed())
	return app
}

// podOf is the Pod of the desired Deployment.
func podOf(g Gomega, seen observed) corev1.PodSpec {
	desired, err := desiredDeployment(seen)
	g.Expect(err).NotTo(HaveOccurred())
	return templateOf(g, desired.(*appsv1ac.DeploymentApplyConfiguration)).Spec
}

func templateOf(g Gomega, d *appsv1ac.DeploymentApplyConfiguration) corev1.PodTemplateSpec {
	template, err := as[corev1.PodTemplateSpec](d.Spec.Template)
	g.Expect(err).NotTo(HaveOccurred())
	return ptr.Deref(template, corev1.PodTemplateSpec{})
}
