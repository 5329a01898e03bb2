package upgrade_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hduolab/quell/controller/app"
	"github.com/hduolab/quell/test/localcluster"
)

const image = "registry.example/quell-manager:v1.2.3"

var _ = Describe("An installation from dist/install.yaml", Ordered, func() {
	var file string

	BeforeAll(func(ctx SpecContext) {
		file = filepath.Join(GinkgoT().TempDir(), "install.yaml")
		run(ctx, root, "make", "--no-print-directory", "build-installer", "INSTALLER="+file, "IMAGE="+image)
	})

	It("is accepted with its Pod, under restricted Pod Security, without a warning", func(ctx SpecContext) {
		out := kubectl(ctx, "apply", "--server-side", "-f", file)
		Expect(out).NotTo(ContainSubstring("Warning"))
		expectInstalled(ctx, 1)
		var manager appsv1.Deployment
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: system, Name: managerName}, &manager)).To(Succeed())
		Expect(manager.Spec.Template.Spec.Containers[0].Image).To(Equal(image))
	})

	It("can be applied again without a change", func(ctx SpecContext) {
		mark, err := cluster.Mark()
		Expect(err).NotTo(HaveOccurred())
		var before, after appsv1.Deployment
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: system, Name: managerName}, &before)).To(Succeed())
		kubectl(ctx, "apply", "--server-side", "-f", file)
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: system, Name: managerName}, &after)).To(Succeed())
		Expect(after.Generation).To(Equal(before.Generation))
		refused, err := cluster.Requests(mark, localcluster.Writes, func(r localcluster.Request) bool {
			return r.Code >= 400 && !strings.HasPrefix(r.User, "system:serviceaccount:kube-system:") // Kubernetes clears up on its own
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(refused).To(BeEmpty())
	})

	It("is removed with all Apps and their children", func(ctx SpecContext) {
		m := startManager(ctx, buildManager(ctx, root, "v0.2.0"))
		kubectl(ctx, "apply", "--server-side", "-k", "config/samples")
		awaitVersion(ctx, "v0.2.0")
		m.stop(ctx)
		kubectl(ctx, "delete", "-f", file)
		expectNothingLeft(ctx)
	})
})

var _ = Describe("An installation by Helm", Ordered, func() {
	var (
		helm  func(ctx context.Context, args ...string) string
		chart string
	)

	BeforeAll(func(ctx SpecContext) {
		home := GinkgoT().TempDir()
		run(ctx, filepath.Join(root, "test/tools/chart"), "go", "build", "-o", filepath.Join(home, "helm"), "helm.sh/helm/v4/cmd/helm")
		helm = func(ctx context.Context, args ...string) string {
			GinkgoHelper()
			return run(ctx, root, filepath.Join(home, "helm"), append(args, "--namespace="+system)...)
		}
		chart = filepath.Join(home, "chart")
		Expect(os.CopyFS(chart, os.DirFS(filepath.Join(root, "config/chart")))).To(Succeed())
	})

	It("is accepted in a namespace of its own", func(ctx SpecContext) {
		path := filepath.Join(chart, "files/crd/quell.dev_apps.yaml") // of an earlier chart, which had no such short name
		definition, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(definition)).To(ContainSubstring("    - qapp\n"))
		Expect(os.WriteFile(path, []byte(strings.Replace(string(definition), "    shortNames:\n    - qapp\n", "", 1)), 0o600)).To(Succeed())
		helm(ctx, "install", "quell", chart, "--create-namespace", "--wait", "--timeout=3m")
		expectInstalled(ctx, 1)
		Expect(definitionOfApp(ctx).Spec.Names.ShortNames).To(BeEmpty())
		kubectl(ctx, "apply", "--server-side", "-f", "config/samples/app_minimal.yaml")
	})

	It("upgrades the CustomResourceDefinitions and takes new values", func(ctx SpecContext) {
		helm(ctx, "upgrade", "quell", "config/chart", "--wait", "--timeout=3m", "--set=replicas=2,podDisruptionBudget.enabled=true,networkPolicy.enabled=true,shards[0].name=eu-1,rights.stormWatch.workloads=true")
		expectInstalled(ctx, 2)
		Expect(definitionOfApp(ctx).Spec.Names.ShortNames).To(ConsistOf("qapp"))
	})

	It("leaves definitions and Apps when it is removed, and takes them up again", func(ctx SpecContext) {
		helm(ctx, "uninstall", "quell")
		expectGone(ctx, system)
		Expect(kubectl(ctx, "get", "apps.quell.dev", "-o", "name")).To(ContainSubstring("sample"))
		helm(ctx, "install", "quell", "config/chart", "--create-namespace", "--wait", "--timeout=3m", "--set=crds.keep=false")
		expectInstalled(ctx, 1)
	})

	It("removes everything when it is told not to keep definitions", func(ctx SpecContext) {
		helm(ctx, "uninstall", "quell")
		expectNothingLeft(ctx)
	})
})

func definitionOfApp(ctx context.Context) *apiextensionsv1.CustomResourceDefinition {
	GinkgoHelper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	Expect(admin.Get(ctx, client.ObjectKey{Name: "apps.quell.dev"}, crd)).To(Succeed())
	return crd
}

// expectInstalled wants the definitions to be served and the operator's Pods admitted. That they become ready is the simulation's doing.
func expectInstalled(ctx context.Context, replicas int32) {
	GinkgoHelper()
	Expect(localcluster.WaitEstablished(ctx, cluster.Config(), "apps.quell.dev", "stormwatches.quell.dev")).To(Succeed())
	Eventually(ctx, func(g Gomega) {
		var d appsv1.Deployment
		g.Expect(admin.Get(ctx, client.ObjectKey{Namespace: system, Name: managerName}, &d)).To(Succeed())
		g.Expect(ptr.Deref(d.Spec.Replicas, 0)).To(Equal(replicas))
		g.Expect(d.Status.ReadyReplicas).To(Equal(replicas))
	}).Should(Succeed())
	var namespace corev1.Namespace
	Expect(admin.Get(ctx, client.ObjectKey{Name: system}, &namespace)).To(Succeed())
	Expect(namespace.Labels).To(HaveKeyWithValue("pod-security.kubernetes.io/enforce", "restricted"))
}

func expectGone(ctx context.Context, namespace string) {
	GinkgoHelper()
	Eventually(ctx, func() bool {
		return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{}))
	}).Should(BeTrue(), "namespace "+namespace)
}

// expectNothingLeft wants nothing of the operator, no App and no child of one.
func expectNothingLeft(ctx context.Context) {
	GinkgoHelper()
	expectGone(ctx, system)
	Expect(kubectl(ctx, "get", "clusterroles,clusterrolebindings", "-l", "app.kubernetes.io/name=quell", "-o", "name")).To(BeEmpty())
	Eventually(ctx, func() string {
		return kubectl(ctx, "get", "crd", "-o", "name")
	}).ShouldNot(ContainSubstring("quell.dev"))
	children := "deployments,services,serviceaccounts,horizontalpodautoscalers,poddisruptionbudgets,ingresses,networkpolicies"
	Eventually(ctx, func() string {
		return kubectl(ctx, "get", children, "-A", "-o", "name", "-l", app.LabelManagedBy+"="+app.ManagedBy)
	}).Should(BeEmpty())
}
