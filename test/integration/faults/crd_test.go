package faults_test

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/test/localcluster"
)

var _ = Describe("The CustomResourceDefinition", Serial, Ordered, func() {
	crdFile := filepath.Join(configDir, "crd", "quell.dev_apps.yaml")

	It("may get fields and defaults that the operator does not know while it runs: it writes nothing for it, keeps "+
		"them, and goes on", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		o := startOperator(ns)
		a := createReady(ctx, newApp(ns, "shop", withAccount))
		o.idle(ctx)
		o.forget()
		kubectl("apply", "--server-side", "-f", withNewFields(crdFile))
		DeferCleanup(func() { kubectl("apply", "--server-side", "-f", crdFile) })
		Eventually(ctx, func() error {
			return admin.Patch(ctx, a, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"future":"kept"}}`)), client.FieldOwner("kubectl-edit"))
		}).Should(Succeed())
		o.idle(ctx)
		children := o.count(isChildWrite)
		Expect(children).To(BeZero(), words(o.sent(ofLoop)))
		Expect(o.count(isStatusApply)).To(BeNumerically("<=", 1), "the new generation was observed")

		ask(ctx, a, func(s *quellv1alpha1.AppSpec) { s.Image = imageNo(2) })
		converge(ctx, a)
		Expect(admin.Patch(ctx, a, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"future":"kept"}}`)))).To(Succeed())
		Expect(admin.Status().Patch(ctx, a, client.RawPatch(types.MergePatchType, []byte(`{"status":{"future":"kept"}}`)), client.FieldOwner("another-operator"))).To(Succeed())
		Expect(admin.Patch(ctx, a, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":3}}`)))).To(Succeed())
		converge(ctx, a)
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(quellv1alpha1.SchemeGroupVersion.WithKind("App"))
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(a), live)).To(Succeed())
		spec, status := live.Object["spec"].(map[string]any), live.Object["status"].(map[string]any)
		Expect(spec).To(And(HaveKeyWithValue("future", "kept"), HaveKeyWithValue("futureDefault", "on")))
		Expect(status).To(HaveKeyWithValue("future", "kept"))
		tell("CRD upgraded: %d writes of children (bound 0)", children)
		expectQuiet(ctx, ns)
	})

	It("may be removed and brought back under a running operator, which then goes on with new Apps, and asks no more "+
		"than its watches' back-off meanwhile", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		o := startOperator(ns)
		createReady(ctx, newApp(ns, "shop", withAccount))
		o.idle(ctx)
		o.forget()
		DeferCleanup(func(ctx SpecContext) {
			kubectl("apply", "--server-side", "-f", crdFile)
			Expect(localcluster.WaitEstablished(ctx, cluster.Config(), "apps.quell.dev")).To(Succeed())
		})
		kubectl("delete", "--wait", "-f", crdFile)
		// The App went with its definition. Its children may stay until that is back: without it the garbage collector cannot ask.
		loop, refused := o.count(ofLoop), o.count(func(c call) bool { return c.ofCache() && c.code == 404 })
		kubectl("apply", "--server-side", "-f", crdFile)
		Expect(localcluster.WaitEstablished(ctx, cluster.Config(), "apps.quell.dev")).To(Succeed())
		again := newApp(ns, "shop", withAccount)
		Eventually(ctx, func() error {
			if err := admin.Create(ctx, again); err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
			return nil
		}).Should(Succeed())
		converge(ctx, again)
		tell("CRD removed: %d calls about its App (bound 6), %d watches answered 404", loop, refused)
		Expect(loop).To(BeNumerically("<=", 6))
		expectQuiet(ctx, ns)
	})
})

// withNewFields is a file with the definition of a later release: fields more, one of them with a default.
func withNewFields(file string) string {
	GinkgoHelper()
	raw, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	var crd apiextensionsv1.CustomResourceDefinition
	Expect(yaml.Unmarshal(raw, &crd)).To(Succeed())
	schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	for _, part := range []string{"spec", "status"} {
		schema.Properties[part].Properties["future"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	}
	schema.Properties["spec"].Properties["futureDefault"] = apiextensionsv1.JSONSchemaProps{
		Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"on"`)},
	}
	later := filepath.Join(GinkgoT().TempDir(), "crd.yaml")
	raw, err = yaml.Marshal(crd)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(later, raw, 0o600)).To(Succeed())
	return later
}
