package kubectlquell_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/hduolab/quell/test/localcluster"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// content is an object without what a patch of managedFields may change.
func content(u *unstructured.Unstructured) map[string]any {
	u = u.DeepCopy()
	u.SetManagedFields(nil)
	u.SetResourceVersion("")
	return u.Object
}

// entriesBut are the entries of an object without those of some managers.
func entriesBut(u *unstructured.Unstructured, managers ...string) []fieldowners.Entry {
	var others []fieldowners.Entry
	for _, e := range fieldowners.Parse(u.GetManagedFields()) {
		if !strings.Contains(strings.Join(managers, " ")+" ", e.Manager+" ") {
			others = append(others, e)
		}
	}
	return others
}

func backupFile() string { return filepath.Join(GinkgoT().TempDir(), "backup.yaml") }

var _ = Describe("transfer, release and restore", func() {
	It("has the new manager conflict with nobody, and changes nothing else", func(ctx SpecContext) {
		ns := namespace(ctx)
		web := mustApply(ctx, "old", ns, deployment("web", "nginx:1", 1, "x"))
		update(ctx, "older", web, `{"spec":{"revisionHistoryLimit":3}}`)
		mustApply(ctx, "bystander", ns, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {by: stander}}}`)
		kubectl(ctx, "-n", ns, "rollout", "status", "deployment/web", "--timeout=60s")
		wanted := strings.Replace(deployment("web", "nginx:2", 1, "z"), "replicas: 1", "replicas: 2, revisionHistoryLimit: 4", 1)
		wanted = strings.Replace(wanted, "replicas: 2, ", "replicas: 2\n  ", 1)
		Expect(realConflicts(ctx, "new", ns, wanted)).NotTo(BeEmpty())
		before := get(ctx, web)

		out := expect(ctx, 0, "transfer", "deployment/web", "-n", ns, "--from", "old,older", "--to", "new", "--yes", "--backup", backupFile())
		Expect(out).To(MatchRegexp(`\.spec\.replicas +"old" \(Apply\) +"new" \(Apply\)`))
		after := get(ctx, web)
		Expect(content(after)).To(Equal(content(before)))
		Expect(entriesBut(after, "old", "older", "new")).To(Equal(entriesBut(before, "old", "older", "new")))
		Expect(expect(ctx, 0, "conflicts", "-f", file(wanted), "-n", ns, "--field-manager", "new")).To(ContainSubstring("no conflicts"))
		Expect(realConflicts(ctx, "new", ns, wanted)).To(BeEmpty())
	})

	It("hands over one path and restores it", func(ctx SpecContext) {
		ns := namespace(ctx)
		web := mustApply(ctx, "old", ns, deployment("web", "nginx:1", 1, "x"))
		kubectl(ctx, "-n", ns, "rollout", "status", "deployment/web", "--timeout=60s")
		backup := backupFile()
		expect(ctx, 0, "transfer", "deployment/web", "-n", ns, "--from", "old", "--to", "new", "--yes", "--backup", backup,
			"--path", `.spec.template.spec.containers[name="web"].image`, "--path", `.metadata.labels["app.kubernetes.io/name"]`)
		Expect(quell(ctx, "release", "deployment/web", "-n", ns, "--manager", "new", "--path", ".spec.template.spec.containers[0].image").err).
			To(ContainSubstring(`owned by their keys, as in [name="web"]`))
		Expect(realConflicts(ctx, "new", ns, deployment("web", "nginx:2", 1, "x"))).To(BeEmpty())
		update(ctx, "bystander", web, `{"metadata":{"labels":{"by":"stander"}}}`)
		Expect(quell(ctx, "restore", backup, "--yes").err).To(ContainSubstring("moved on"), "the new manager has applied since")

		again := mustApply(ctx, "old", ns, deployment("web", "nginx:1", 1, "x"))
		kubectl(ctx, "-n", ns, "rollout", "status", "deployment/web", "--timeout=60s")
		before := get(ctx, again)
		backup = backupFile()
		expect(ctx, 0, "release", "deployment/web", "-n", ns, "--manager", "old", "--yes", "--backup", backup)
		update(ctx, "bystander", web, `{"metadata":{"labels":{"by":"another"}}}`)
		expect(ctx, 3, "transfer", "deployment/web", "-n", ns, "--from", "old", "--to", "new", "--yes")
		raw, err := os.ReadFile(backup)
		Expect(err).NotTo(HaveOccurred())
		restored := execute(ctx, bin, cluster.Kubeconfig(), string(raw), filepath.Join(bin, "kubectl-quell"), "restore", "-f", "-", "--yes")
		Expect(restored.code).To(BeZero(), restored.err)
		Expect(fieldowners.Diff(fieldowners.Parse(before.GetManagedFields()), fieldowners.Parse(get(ctx, web).GetManagedFields()))).To(BeEmpty())
	})

	It("refuses to restore onto another object of the name, and to replace a backup", func(ctx SpecContext) {
		ns := namespace(ctx)
		const manifest = `{apiVersion: v1, kind: ConfigMap, metadata: {name: cm}, data: {a: b}}`
		cm := mustApply(ctx, "old", ns, manifest)
		backup := backupFile()
		expect(ctx, 0, "release", "cm/cm", "-n", ns, "--manager", "old", "--yes", "--backup", backup)
		Expect(admin.Delete(ctx, cm)).To(Succeed())
		mustApply(ctx, "old", ns, manifest)
		Expect(quell(ctx, "restore", backup, "--yes").err).To(ContainSubstring("created anew"))
		r := quell(ctx, "release", "cm/cm", "-n", ns, "--manager", "old", "--yes", "--backup", backup)
		Expect(r.code).To(Equal(3))
		Expect(r.err).To(ContainSubstring(backup + " exists, and a backup never replaces a file"))
		Expect(get(ctx, cm).GetManagedFields()).To(HaveLen(1))
	})

	It("restores what can be restored, and tells of the rest", func(ctx SpecContext) {
		ns := namespace(ctx)
		backup := backupFile()
		for _, name := range []string{"a", "b", "c"} {
			mustApply(ctx, "old", ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: `+name+`}, data: {a: b}}`)
		}
		update(ctx, "bystander", object("v1", "ConfigMap", ns, "c"), `{"data":{"c":"d"}}`)
		expect(ctx, 0, "release", "cm/a", "cm/b", "cm/c", "-n", ns, "--manager", "old", "--yes", "--backup", backup)
		Expect(admin.Delete(ctx, object("v1", "ConfigMap", ns, "b"))).To(Succeed())
		update(ctx, "bystander", object("v1", "ConfigMap", ns, "c"), `{"data":{"e":"f"}}`)
		r := quell(ctx, "restore", backup, "--yes")
		Expect(r.code).To(Equal(3))
		Expect(r.err).To(ContainSubstring(`configmaps "b" not found`))
		Expect(get(ctx, object("v1", "ConfigMap", ns, "a")).GetManagedFields()).To(ConsistOf(HaveField("Manager", "old")))
		Expect(get(ctx, object("v1", "ConfigMap", ns, "c")).GetManagedFields()).To(ConsistOf(HaveField("Manager", "old"), HaveField("Manager", "bystander")))
		Expect(quell(ctx, "restore", backup, "--yes").err).To(ContainSubstring(ns+"/a: it is as it was before"), "and may be run again")
	})

	It("has nothing to do where nothing is selected", func(ctx SpecContext) {
		ns := namespace(ctx)
		for _, args := range [][]string{{"release", "--manager", "old"}, {"transfer", "--from", "old", "--to", "new"}} {
			r := quell(ctx, append(args, "deployments", "-n", ns, "-l", "app=none", "--yes")...)
			Expect(r).To(Equal(result{0, "", "no objects found\n"}))
		}
	})

	It("asks, and stores nothing in a dry run", func(ctx SpecContext) {
		ns := namespace(ctx)
		cm := mustApply(ctx, "old", ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: cm}, data: {a: b}}`)
		args := []string{"release", "cm/cm", "-n", ns, "--manager", "old"}
		program := filepath.Join(bin, "kubectl-quell")
		dir := GinkgoT().TempDir()
		Expect(expect(ctx, 0, append(args, "--dry-run=server")...)).To(ContainSubstring("server dry run"))
		Expect(execute(ctx, dir, cluster.Kubeconfig(), "", program, args...).code).To(Equal(2), "nobody answers")
		Expect(execute(ctx, dir, cluster.Kubeconfig(), "n\n", program, args...).code).To(BeZero())
		Expect(get(ctx, cm).GetResourceVersion()).To(Equal(cm.GetResourceVersion()))
		Expect(os.ReadDir(dir)).To(BeEmpty())
		yes := execute(ctx, dir, cluster.Kubeconfig(), "yes\n", program, args...)
		Expect(yes.code).To(BeZero(), yes.err)
		Expect(get(ctx, cm).GetManagedFields()).To(BeEmpty())
		Expect(os.ReadDir(dir)).To(HaveLen(1))
	})

	It("works over a selection", func(ctx SpecContext) {
		ns := namespace(ctx)
		for _, name := range []string{"a", "b", "c"} {
			mustApply(ctx, map[bool]string{true: "other", false: "old"}[name == "c"], ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: `+name+`, labels: {l: m}}, data: {a: b}}`)
		}
		expect(ctx, 0, "transfer", "configmaps", "-n", ns, "-l", "l=m", "--from", "old", "--to", "new", "--yes", "--backup", backupFile())
		for name, manager := range map[string]string{"a": "new", "b": "new", "c": "other"} {
			Expect(get(ctx, object("v1", "ConfigMap", ns, name)).GetManagedFields()).To(ConsistOf(HaveField("Manager", manager)))
		}
	})

	It("tries again after a change in between, and refuses when owners changed", func(ctx SpecContext) {
		ns := namespace(ctx)
		const manifest = `{apiVersion: v1, kind: ConfigMap, metadata: {name: cm}, data: {a: b, c: d}}`
		cm := mustApply(ctx, "old", ns, manifest)
		args := []string{"transfer", "cm/cm", "-n", ns, "--from", "old", "--to", "new", "--yes", "--backup", backupFile()}

		kubeconfig := interposed(ctx, func() { update(ctx, "bystander", cm, `{"metadata":{"labels":{"by":"stander"}}}`) })
		r := execute(ctx, bin, kubeconfig, "", filepath.Join(bin, "kubectl-quell"), args...)
		Expect(r.code).To(BeZero(), r.err)
		Expect(get(ctx, cm).GetManagedFields()).To(ConsistOf(HaveField("Manager", "new"), HaveField("Manager", "bystander")))

		Expect(admin.Delete(ctx, cm)).To(Succeed())
		mustApply(ctx, "old", ns, manifest)
		args[len(args)-1] = backupFile()
		kubeconfig = interposed(ctx, func() { update(ctx, "thief", cm, `{"data":{"a":"stolen"}}`) })
		r = execute(ctx, bin, kubeconfig, "", filepath.Join(bin, "kubectl-quell"), args...)
		Expect(r.code).To(Equal(3))
		Expect(r.err).To(ContainSubstring("owners changed in between"))
		Expect(get(ctx, cm).GetManagedFields()).To(ConsistOf(HaveField("Manager", "old"), HaveField("Manager", "thief")))

		args[len(args)-1] = backupFile()
		kubeconfig = interposed(ctx, func() {
			Expect(admin.Delete(ctx, cm)).To(Succeed())
			mustApply(ctx, "old", ns, manifest)
		})
		r = execute(ctx, bin, kubeconfig, "", filepath.Join(bin, "kubectl-quell"), args...)
		Expect(r.code).To(Equal(3))
		Expect(r.err).To(ContainSubstring("created anew"))
	})
})

// interposed is the kubeconfig of a way to the cluster on which something happens before the first patch.
func interposed(ctx context.Context, happens func()) string {
	GinkgoHelper()
	cfg := cluster.Config()
	transport, err := rest.TransportFor(cfg)
	Expect(err).NotTo(HaveOccurred())
	target, err := url.Parse(cfg.Host)
	Expect(err).NotTo(HaveOccurred())
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport = transport
	var happened atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch && !happened.Swap(true) {
			happens()
		}
		proxy.ServeHTTP(w, r)
	}))
	DeferCleanup(server.Close)
	kubeconfig := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(localcluster.WriteKubeconfig(kubeconfig, &rest.Config{Host: server.URL})).To(Succeed())
	Expect(ctx.Err()).NotTo(HaveOccurred())
	return kubeconfig
}
