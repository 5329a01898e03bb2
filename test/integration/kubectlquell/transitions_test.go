package kubectlquell_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
)

var _ = Describe("diff-owners --watch", func() {
	watching := func(name, ns string, more ...string) *gexec.Session {
		GinkgoHelper()
		cmd := exec.Command(filepath.Join(bin, "kubectl-quell"), append(more, "diff-owners", name, "-n", ns, "--watch")...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig(), "HOME="+bin)
		running, err := gexec.Start(cmd, GinkgoWriter, GinkgoWriter)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { running.Kill().Wait() })
		Eventually(running.Err).Should(gbytes.Say("watching"))
		return running
	}

	It("has a line for each field that changes owners, until Ctrl-C", func(ctx SpecContext) {
		ns := namespace(ctx)
		cm := mustApply(ctx, "one", ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: cm}, data: {a: "1", b: "1"}}`)
		running := watching("cm/cm", ns)
		mustApply(ctx, "two", ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: cm}, data: {a: "2"}}`)
		Eventually(running.Out).Should(gbytes.Say(`\.data\.a  "two" \(Apply\) takes it from "one" \(Apply\)  "1" -> "2"\n`))
		update(ctx, "three", cm, `{"data":{"b":null}}`)
		Eventually(running.Out).Should(gbytes.Say(`\.data\.b  "one" \(Apply\) loses it  "1" -> <absent>\n`))
		running.Signal(syscall.SIGINT)
		Eventually(running).Should(gexec.Exit(0))
	})

	It("has a report for each version that changes owners, as soon as it is there", func(ctx SpecContext) {
		ns := namespace(ctx)
		cm := mustApply(ctx, "one", ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: cm}, data: {a: "1", b: "1"}}`)
		running := watching("cm/cm", ns, "-o", "json")
		// paths of each report, or nothing while one is not whole.
		paths := func() (all [][]string) {
			for reports := json.NewDecoder(bytes.NewReader(running.Out.Contents())); reports.More(); {
				var report struct {
					Kind   string
					Object struct{ ResourceVersion string }
					Items  []struct{ Path, ResourceVersion string }
				}
				if reports.Decode(&report) != nil {
					return nil
				}
				Expect(report.Kind).To(Equal("OwnerDiffReport"))
				var found []string
				for _, i := range report.Items {
					Expect(i.ResourceVersion).To(Equal(report.Object.ResourceVersion))
					found = append(found, i.Path)
				}
				all = append(all, found)
			}
			return all
		}
		mustApply(ctx, "two", ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: cm}, data: {a: "2", c: "1"}}`)
		Eventually(paths).Should(Equal([][]string{{".data.a", ".data.c"}}))
		update(ctx, "three", cm, `{"data":{"b":null}}`)
		Eventually(paths).Should(Equal([][]string{{".data.a", ".data.c"}, {".data.b"}}))
		running.Signal(syscall.SIGINT)
		Eventually(running).Should(gexec.Exit(0))
	})

	It("ends with the object", func(ctx SpecContext) {
		ns := namespace(ctx)
		cm := mustApply(ctx, "one", ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: cm}, data: {a: "1"}}`)
		running := watching("cm/cm", ns)
		Expect(admin.Delete(ctx, cm)).To(Succeed())
		Eventually(running).Should(gexec.Exit(0))
		Expect(running.Err).To(gbytes.Say("deleted"))
	})
})
