package app_test

import (
	"context"
	"fmt"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/test/localcluster"
)

var _ = Describe("A person with kubectl", func() {
	It("installs the CRD client-side and server-side, again and again", func() {
		dir := filepath.Join(configDir, "crd")
		Expect(kubectl("apply", "-f", dir)).To(ContainSubstring("unchanged"))
		kubectl("apply", "--server-side", "--force-conflicts", "-f", dir)
		kubectl("apply", "--server-side", "-k", dir)
		kubectl("apply", "-k", dir)
	})

	It("works with the samples under the built-in role edit", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		dev := developer(ctx, ns)
		run := func(args ...string) string {
			GinkgoHelper()
			return kubectlAs(dev, append([]string{"--namespace=" + ns}, args...)...)
		}
		applySamples(run)
		run("wait", "--for=condition=Ready", "app", "--all", "--timeout=90s")

		Eventually(func() string { return run("get", "app") }).Should(And(
			MatchRegexp(`NAME +READY +PHASE +IMAGE +AGE\n`),
			MatchRegexp(`sample +2/2 +Running +nginxinc/nginx-unprivileged:1.29 +\d+`),
			MatchRegexp(`sample-minimal +1/1 +Running +registry.k8s.io/pause:3.10 +\d+`),
		))
		Expect(run("get", "qapp", "sample", "-o", "wide")).To(And(ContainSubstring("REASON"), ContainSubstring("AllReplicasReady")))
		Expect(run("get", "all")).To(And(ContainSubstring("app.quell.dev/sample"), ContainSubstring("deployment.apps/sample"), ContainSubstring("service/sample")))

		run("scale", "app", "sample", "--replicas=3")
		run("wait", "--for=jsonpath={.status.ready}=3/3", "app/sample", "--timeout=90s")
		run("wait", "--for=jsonpath={.status.observedGeneration}=2", "app/sample", "--timeout=90s")
		Expect(run("get", "app", "sample", "-o", "jsonpath={.status.endpoint}")).To(Equal("sample." + ns + ".svc:8080"))

		for kind, owner := range map[string]string{"app": "quell-app-status", "deployment": "quell-app", "service": "quell-app"} {
			Expect(run("get", kind, "sample", "--show-managed-fields", "-o", `jsonpath={range .metadata.managedFields[*]}{.manager}/{.operation}/{.subresource} {end}`)).
				To(ContainSubstring(owner + "/Apply/"))
		}
		Expect(run("explain", "app.spec.conflictPolicy.mode")).To(ContainSubstring("takes a field back"))
		Expect(run("explain", "app.status.phase")).To(ContainSubstring("Degraded"))
		run("delete", "app", "--all", "--wait")
		Eventually(func() string { return run("get", "deployment,service,app") }).Should(ContainSubstring("No resources found"))
	})

	It("may not write status under the built-in role edit", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		create(ctx, newApp(ns, "shop"))
		out, err := kubectlCommand(developer(ctx, ns), "-n", ns, "patch", "app", "shop", "--subresource=status", "--type=merge", `-p={"status":{"phase":"Failed"}}`).CombinedOutput()
		Expect(err).To(HaveOccurred())
		Expect(string(out)).To(ContainSubstring("Forbidden"))
	})
})

// applySamples applies the first samples into the namespace that run uses.
func applySamples(run func(args ...string) string) {
	GinkgoHelper()
	for _, file := range []string{"app.yaml", "app_minimal.yaml"} {
		applySample(run, file)
	}
}

// developer makes a person with the built-in role edit in one namespace, and returns a kubeconfig.
func developer(ctx context.Context, namespace string) string {
	GinkgoHelper()
	name := "dev-" + namespace
	Expect(admin.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "dev"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}},
	})).To(Succeed())
	cfg, err := cluster.User(name)
	Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(localcluster.WriteKubeconfig(path, cfg)).To(Succeed())
	// The rules of config/rbac reach the role edit through the aggregation controller.
	dev := clientAs(cfg, name)
	Eventually(ctx, func() error { return dev.List(ctx, &quellv1alpha1.AppList{}, client.InNamespace(namespace)) }).Should(Succeed())
	Eventually(ctx, func() error {
		return dev.Create(ctx, newApp(namespace, fmt.Sprintf("try-%s", namespace)), client.DryRunAll)
	}).Should(Succeed())
	return path
}
