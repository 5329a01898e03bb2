package app

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/ssa"
)

func configFiles(files ...quellv1alpha1.AppConfigFiles) *quellv1alpha1.App {
	app := shop()
	app.Spec.ConfigFiles = files
	return app
}

func TestRollingAreTheNamedObjectsOnce(t *testing.T) {
	g := NewWithT(t)
	app := configFiles(
		quellv1alpha1.AppConfigFiles{Name: "c", Secret: "b", OnChange: quellv1alpha1.ConfigRoll},
		quellv1alpha1.AppConfigFiles{Name: "a", ConfigMap: "b", OnChange: quellv1alpha1.ConfigRoll},
		quellv1alpha1.AppConfigFiles{Name: "again", ConfigMap: "b", SubPath: "x", OnChange: quellv1alpha1.ConfigRoll},
		quellv1alpha1.AppConfigFiles{Name: "ignored", ConfigMap: "c", OnChange: quellv1alpha1.ConfigIgnore},
		quellv1alpha1.AppConfigFiles{Name: "default", ConfigMap: "d"},
	)
	g.Expect(rolling(app)).To(Equal([]configRef{{kindConfigMap, "b"}, {kindSecret, "b"}}))
	g.Expect(rolling(shop())).To(BeEmpty())
	g.Expect(configKeys(app)).To(Equal([]string{"ConfigMap", "ConfigMap/b", "Secret", "Secret/b"}))
}

func TestContentSum(t *testing.T) {
	secret := func(uid types.UID, value string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{UID: uid, ResourceVersion: value}, Data: map[string][]byte{"a": []byte(value), "b": nil}}
	}
	configMap := func(value string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "1"}, Data: map[string]string{"a": value}}
	}
	labelled := secret("1", "x")
	labelled.Labels, labelled.Annotations = map[string]string{"a": "b"}, map[string]string{"a": "b"}
	binary := configMap("x")
	binary.Data, binary.BinaryData = nil, map[string][]byte{"a": []byte("x")}
	for name, c := range map[string]struct {
		a, b client.Object
		same bool
	}{
		"again":             {secret("1", "x"), secret("1", "x"), true},
		"metadata":          {secret("1", "x"), labelled, true},
		"a value":           {secret("1", "x"), secret("1", "y"), false},
		"another object":    {secret("1", "x"), secret("2", "x"), false},
		"a ConfigMap":       {configMap("x"), configMap("y"), false},
		"binary data":       {configMap("x"), binary, false},
		"where a key ends":  {&corev1.Secret{Data: map[string][]byte{"ab": []byte("c")}}, &corev1.Secret{Data: map[string][]byte{"a": []byte("bc")}}, false},
		"an empty key more": {&corev1.ConfigMap{}, &corev1.ConfigMap{Data: map[string]string{"a": ""}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			a, err := contentSum(c.a)
			g.Expect(err).NotTo(HaveOccurred())
			b, err := contentSum(c.b)
			g.Expect(err).NotTo(HaveOccurred())
			if c.same {
				g.Expect(a).To(Equal(b))
			} else {
				g.Expect(a).NotTo(Equal(b))
			}
		})
	}
	_, err := contentSum(&corev1.Pod{})
	NewWithT(t).Expect(err).To(HaveOccurred())
}

func TestCombinedHashTellsWhichObjectHasWhichContent(t *testing.T) {
	g := NewWithT(t)
	a, b := configRef{kindConfigMap, "a"}, configRef{kindConfigMap, "b"}
	one := combined([]configRef{a, b}, map[configRef][]byte{a: []byte("x"), b: []byte("y")})
	g.Expect(one).To(MatchRegexp("^[0-9a-f]{8}$"))
	g.Expect(combined([]configRef{a, b}, map[configRef][]byte{a: []byte("y"), b: []byte("x")})).NotTo(Equal(one))
	g.Expect(combined([]configRef{a}, map[configRef][]byte{a: []byte("x")})).NotTo(Equal(one))
}

func TestPodsKeepTheirHashWhileContentIsUnknown(t *testing.T) {
	g := NewWithT(t)
	d := running(shop())
	d.Spec.Template.Annotations = map[string]string{AnnotationConfigHash: "01234567"}
	seen := observed{app: shop(), live: map[string]client.Object{kindDeployment: d}, configHash: "other"}
	seen.keepConfig([]string{`Secret "a"`}, []string{`ConfigMap "b"`})
	g.Expect(seen.configHash).To(Equal("01234567"))
	g.Expect(seen.configStalled.reason).To(Equal(reasonForbidden))
	g.Expect(seen.configStalled.message).To(And(ContainSubstring(`Secret "a"`), ContainSubstring("config/configroll")))
	g.Expect(seen.configMoving.reason).To(Equal(reasonConfigMissing))
	g.Expect(seen.configMoving.message).To(ContainSubstring(`ConfigMap "b"`))

	seen = observed{app: shop()}
	seen.keepConfig(nil, []string{`ConfigMap "b"`})
	g.Expect(seen.configHash).To(BeEmpty())
	g.Expect(seen.configStalled).To(BeNil())
}

func TestConfigThatKeepsChangingIsNoFaultOfTheOperator(t *testing.T) {
	g := NewWithT(t)
	path := `.spec.template.metadata.annotations["` + AnnotationConfigHash + `"]`
	churn := applied{Result: ssa.Result{Outcome: ssa.SelfChurn, Reasons: []ssa.Reason{{Path: path}}}}
	_, moving := problem(churn)
	g.Expect(moving.reason).To(Equal(reasonConfigChanging))
	churn.Reasons = append(churn.Reasons, ssa.Reason{Path: ".spec.replicas"})
	_, moving = problem(churn)
	g.Expect(moving.reason).To(Equal(reasonChurn))
}
