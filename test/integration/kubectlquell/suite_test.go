// Package kubectlquell_test runs the built program kubectl-quell against a real cluster, whose controllers and kubectl are
// the other field managers, and compares what it says with what the API server does.
//
// QUELL_OBJECTS sets how many objects the specification of large selections makes (default 1100).
package kubectlquell_test

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hduolab/quell/test/localcluster"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

//go:embed testdata
var testdata embed.FS

var (
	cluster *localcluster.Cluster
	admin   client.Client
	// bin has kubectl and kubectl-quell in it.
	bin string
)

func TestKubectlQuell(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	RegisterFailHandler(Fail)
	RunSpecs(t, "kubectl quell on a real cluster")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(time.Minute) // a limit against hanging, not a measure
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	bin = GinkgoT().TempDir()
	build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(bin, "kubectl-quell"), "../../../cmd/kubectl-quell")
	Expect(build.CombinedOutput()).To(BeEmpty())
	Expect(os.Symlink("kubectl-quell", filepath.Join(bin, "kubectl_complete-quell"))).To(Succeed())
	var err error
	cluster, err = localcluster.Start(ctx, localcluster.Options{Nodes: 1, Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(cluster.Stop()).To(Succeed()) })
	Expect(os.Symlink(cluster.Kubectl(), filepath.Join(bin, "kubectl"))).To(Succeed())
	cfg := cluster.Config()
	cfg.QPS, cfg.Burst = 1000, 1000
	admin, err = client.New(cfg, client.Options{Scheme: runtime.NewScheme()})
	Expect(err).NotTo(HaveOccurred())
	kubectl(ctx, "create", "-f", asset("gadgets.yaml"))
	Expect(localcluster.WaitEstablished(ctx, cluster.Config(), "gadgets.test.quell.dev")).To(Succeed())
	Eventually(func() error { // an established definition may not be served yet
		_, err := apply(ctx, "first", "default", gadget(`spec: {}`), true)
		return err
	}).Should(Succeed())
	Eventually(func() int { // and its schema is published later still
		return execute(ctx, bin, cluster.Kubeconfig(), "", cluster.Kubectl(), "get", "--raw", "/openapi/v3/apis/test.quell.dev/v1").code
	}).Should(BeZero())
}, NodeTimeout(20*time.Minute)) // the first start builds Kubernetes

// result of one run of a program.
type result struct {
	code     int
	out, err string
}

// execute runs a program with the cluster's kubeconfig, or another one.
func execute(ctx context.Context, dir, kubeconfig, stdin, name string, args ...string) result {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+bin)
	cmd.Stdin = strings.NewReader(stdin)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		Fail(err.Error())
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}
}

// quell runs kubectl-quell.
func quell(ctx context.Context, args ...string) result {
	GinkgoHelper()
	return execute(ctx, bin, cluster.Kubeconfig(), "", filepath.Join(bin, "kubectl-quell"), args...)
}

// expect runs kubectl-quell, wants an exit code, and returns what it prints.
func expect(ctx context.Context, code int, args ...string) string {
	GinkgoHelper()
	r := quell(ctx, args...)
	Expect(r.code).To(Equal(code), "kubectl quell %s: %s%s", strings.Join(args, " "), r.out, r.err)
	return r.out
}

func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	r := execute(ctx, bin, cluster.Kubeconfig(), "", cluster.Kubectl(), args...)
	Expect(r.code).To(BeZero(), "kubectl %s: %s%s", strings.Join(args, " "), r.out, r.err)
	return r.out
}

// asset writes a file of testdata for a program to read.
func asset(name string) string {
	GinkgoHelper()
	return file(text(name))
}

func file(content string) string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "manifest.yaml")
	Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	return path
}

// namespace makes one for a specification.
func namespace(ctx context.Context) string {
	GinkgoHelper()
	ns := object("v1", "Namespace", "", "")
	ns.SetGenerateName("quell-")
	Expect(admin.Create(ctx, ns)).To(Succeed())
	DeferCleanup(func(ctx context.Context) { _ = admin.Delete(ctx, ns) })
	return ns.GetName()
}

func object(apiVersion, kind, ns, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(ns)
	u.SetName(name)
	return u
}

func parse(manifest, ns string) *unstructured.Unstructured {
	GinkgoHelper()
	u := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal([]byte(manifest), &u.Object)).To(Succeed())
	u.SetNamespace(ns)
	return u
}

// apply sends a manifest as a manager does, and returns the API server's answer.
func apply(ctx context.Context, manager, ns, manifest string, force bool, subresource ...string) (*unstructured.Unstructured, error) {
	GinkgoHelper()
	u := parse(manifest, ns)
	raw, err := json.Marshal(u)
	Expect(err).NotTo(HaveOccurred())
	patch := client.RawPatch(types.ApplyPatchType, raw)
	if len(subresource) > 0 {
		options := &client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{FieldManager: manager, Force: &force}}
		err = admin.SubResource(subresource[0]).Patch(ctx, u, patch, options)
	} else {
		err = admin.Patch(ctx, u, patch, &client.PatchOptions{FieldManager: manager, Force: &force})
	}
	return u, err
}

func mustApply(ctx context.Context, manager, ns, manifest string, subresource ...string) *unstructured.Unstructured {
	GinkgoHelper()
	u, err := apply(ctx, manager, ns, manifest, true, subresource...)
	Expect(err).NotTo(HaveOccurred())
	return u
}

// update writes as something does that does not apply.
func update(ctx context.Context, manager string, u *unstructured.Unstructured, patch string, subresource ...string) {
	GinkgoHelper()
	raw := client.RawPatch(types.MergePatchType, []byte(patch))
	u = object(u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName())
	if len(subresource) > 0 {
		options := &client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{FieldManager: manager}}
		Expect(admin.SubResource(subresource[0]).Patch(ctx, u, raw, options)).To(Succeed())
		return
	}
	Expect(admin.Patch(ctx, u, raw, client.FieldOwner(manager))).To(Succeed())
}

func get(ctx context.Context, u *unstructured.Unstructured) *unstructured.Unstructured {
	GinkgoHelper()
	live := object(u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName())
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(u), live)).To(Succeed())
	return live
}

// decode reads a report.
func decode(text string, into any) {
	GinkgoHelper()
	Expect(json.Unmarshal([]byte(text), into)).To(Succeed(), text)
}

// deployment is a manifest with a value of every sort that appliers meet in.
func deployment(name, image string, replicas int, label string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, labels: {app.kubernetes.io/name: %[4]s}}
spec:
  replicas: %[3]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      containers:
      - {name: web, image: "%[2]s", args: [a, b], ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}], env: [{name: E, value: %[4]s}]}
`, name, image, replicas, label)
}

func text(name string) string {
	GinkgoHelper()
	raw, err := testdata.ReadFile("testdata/" + name)
	Expect(err).NotTo(HaveOccurred())
	return string(raw)
}
