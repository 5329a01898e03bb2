package kubectlquell_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stormReport is what this suite reads of a report.
type stormReport struct {
	APIVersion, Kind string
	Writes           int64
	Namespaces       []string
	Storms           []struct {
		Object  struct{ Group, Resource, Namespace, Name string }
		Verdict string
		Rate    float64
		Writers []struct{ Manager, Operation, Subresource string }
		Fields  []struct {
			Path   string
			Values []string
		}
		Evidence     []string
		Remedy       string
		Found, Ended *time.Time
		Samples      int
		Confidence   float64
	}
	Resources []struct{ Group, Resource, State string }
	Managers  []struct {
		Manager string
		Writes  int64
	}
}

// writing has an operator write an object until the specification ends: the status of a gadget, with another id in a text each
// time.
func writing(ns, manager string) {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	g := mustApply(ctx, "author", ns, gadget(`spec: {text: x}`))
	var ended sync.WaitGroup
	ended.Go(func() {
		defer GinkgoRecover()
		const pause = 50 * time.Millisecond // the storm has about 20 writes/s
		for ticker := time.NewTicker(pause); ; {
			raw, err := json.Marshal(map[string]any{"status": map[string]any{"text": fmt.Sprintf("request %s has failed", uuid.NewUUID())}})
			Expect(err).NotTo(HaveOccurred())
			u := object(g.GetAPIVersion(), g.GetKind(), g.GetNamespace(), g.GetName())
			options := &client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{FieldManager: manager}}
			err = admin.SubResource("status").Patch(ctx, u, client.RawPatch(types.MergePatchType, raw), options)
			if ctx.Err() != nil {
				ticker.Stop()
				return
			}
			Expect(err).NotTo(HaveOccurred())
			<-ticker.C
		}
	})
	DeferCleanup(func() {
		cancel()
		ended.Wait()
	})
}

// started runs kubectl-quell until it is interrupted.
func started(args ...string) *gexec.Session {
	GinkgoHelper()
	cmd := exec.Command(filepath.Join(bin, "kubectl-quell"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig(), "HOME="+bin)
	running, err := gexec.Start(cmd, GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { running.Kill().Wait() })
	return running
}

func interrupt(running *gexec.Session) {
	GinkgoHelper()
	running.Signal(syscall.SIGINT)
	Eventually(running).Should(gexec.Exit())
}

// terminal is a program that runs on one.
type terminal struct {
	file *os.File
	out  *gbytes.Buffer
	wait func() error
}

func onTerminal(cols, rows uint16, args ...string) terminal {
	GinkgoHelper()
	cmd := exec.Command(filepath.Join(bin, "kubectl-quell"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig(), "HOME="+bin, "TERM=xterm", "NO_COLOR=")
	file, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: cols, Rows: rows})
	Expect(err).NotTo(HaveOccurred())
	out := gbytes.NewBuffer()
	var read sync.WaitGroup
	read.Go(func() { _, _ = io.Copy(io.MultiWriter(out, GinkgoWriter), file) }) // it ends with an error when the program does
	wait := sync.OnceValue(func() error {
		err := cmd.Wait()
		read.Wait()
		return errors.Join(err, file.Close())
	})
	DeferCleanup(func() {
		_ = cmd.Process.Kill() // it has ended, if all went well
		_ = wait()
	})
	return terminal{file, out, wait}
}

var _ = Describe("storm", func() {
	It("tells of a storm in a line when it is found, and all of it at the end", func(ctx SpecContext) {
		ns := namespace(ctx)
		page := filepath.Join(GinkgoT().TempDir(), "storm.html")
		running := started("storm", "gadgets", "-n", ns, "--for", "0", "--exit-code", "--report", page)
		Eventually(running.Err).Should(gbytes.Say("watching gadgets.test.quell.dev in the namespace " + ns + " until Ctrl-C"))
		writing(ns, "gadget-operator")
		Eventually(running.Out).Should(gbytes.Say(`Z .*gadgets\.test\.quell\.dev/%s/g.* VolatileText.*gadget-operator \(Update/status\) to \.status\.text\n`, ns))
		interrupt(running)
		Expect(running.ExitCode()).To(Equal(1))
		Expect(running.Out).To(gbytes.Say(`; 1 storm; 1 of 1 resource watched\n`))
		Expect(running.Out).To(gbytes.Say(`/s +gadgets\.test\.quell\.dev/%s/g +gadget-operator \(Update/status\) +\.status\.text +VolatileText\n`, ns))
		Expect(running.Out).To(gbytes.Say(`remedy: keep ids, durations and counts out of messages`))
		raw, err := os.ReadFile(page)
		Expect(err).NotTo(HaveOccurred())
		for _, want := range []string{"1 storm found", "<polyline", "gadget-operator (Update/status)", ".status.text", "VolatileText", "request ", "</html>"} {
			Expect(string(raw)).To(ContainSubstring(want))
		}
	}, NodeTimeout(5*time.Minute))

	It("shows a table on a terminal, in its place and in the size of the terminal", func(ctx SpecContext) {
		ns := namespace(ctx)
		terminal := onTerminal(100, 12, "storm", "gadgets", "-n", ns)
		writing(ns, "gadget-operator")
		Eventually(terminal.out).Should(gbytes.Say(`since [0-9:]+ \([0-9]+s\): 1 resource watched, no gaps; [0-9.]+ writes/s over all`))
		Eventually(terminal.out).Should(gbytes.Say(`\r\x1b\[[0-9]+A\x1b\[\?7l\x1b\[2Ksince`), "the table takes the place of the one before")
		Eventually(terminal.out).Should(gbytes.Say(`gadget-operator.* \.status\.text.*\x1b\[31mVolatileText\x1b\[0m`))
		Expect(pty.Setsize(terminal.file, &pty.Winsize{Cols: 40, Rows: 3})).To(Succeed())
		Eventually(terminal.out).Should(gbytes.Say(`\x1b\[H\x1b\[2J\x1b\[\?7l\x1b\[2Ksince[^\n]{0,40}…[^\n]*\n`), "a terminal of another size is painted anew")
		_, err := terminal.file.WriteString("\x03") // Ctrl-C
		Expect(err).NotTo(HaveOccurred())
		Eventually(terminal.out).Should(gbytes.Say(`\x1b\[J[0-9]+ writes? from .*; 1 storm; `), "the final table takes the place of the last one")
		Eventually(terminal.out).Should(gbytes.Say(`remedy: keep ids`))
		Expect(terminal.wait()).To(Succeed())
	}, NodeTimeout(5*time.Minute))

	It("reports a storm that goes on", func(ctx SpecContext) {
		ns := namespace(ctx)
		writing(ns, "gadget-operator")
		running := started("storm", "-o", "json", "--for", "0")
		Eventually(running.Err).Should(gbytes.Say(`watching \d+ custom resources? in all namespaces`))
		Eventually(running.Err).Should(gbytes.Say(`%s/g.* VolatileText`, ns))
		interrupt(running)
		Expect(running.ExitCode()).To(BeZero(), "without --exit-code")
		var report stormReport
		decode(string(running.Out.Contents()), &report)
		Expect(report.APIVersion + " " + report.Kind).To(Equal("cli.quell.dev/v1alpha1 StormReport"))
		Expect(report.Storms).NotTo(BeEmpty())
		s := report.Storms[0]
		Expect(s.Object.Resource + "/" + s.Object.Namespace + "/" + s.Object.Name).To(Equal("gadgets/" + ns + "/g"))
		Expect(s.Verdict).To(Equal("VolatileText"))
		Expect(s.Writers[0].Manager + " " + s.Writers[0].Operation + " " + s.Writers[0].Subresource).To(Equal("gadget-operator Update status"))
		Expect(s.Fields[0].Path).To(Equal(".status.text"))
		Expect(s.Fields[0].Values).To(ContainElement(ContainSubstring("request ")))
		Expect(s.Ended).To(BeNil())
		Expect(s.Rate).To(BeNumerically(">", 1))
		Expect(report.Managers[0].Manager).To(Equal("gadget-operator"))
		Expect(report.Managers[0].Writes).To(BeNumerically(">", 10))
	}, NodeTimeout(5*time.Minute))

	It("finds nothing where nothing storms", func(ctx SpecContext) {
		out := expect(ctx, 0, "storm", "configmaps,gadgets", "-n", namespace(ctx), "--for", "2s", "--exit-code")
		Expect(out).To(ContainSubstring("no write storm found"))
		Expect(out).To(ContainSubstring("2 of 2 resources watched"))
		Expect(out).NotTo(ContainSubstring("not seen"))
	})

	It("knows types as kubectl does", func(ctx SpecContext) {
		ns := namespace(ctx)
		watched := func(args ...string) []string {
			var report stormReport
			decode(expect(ctx, 0, append([]string{"storm", "--for", "1s", "-o", "json"}, args...)...), &report)
			var names []string
			for _, r := range report.Resources {
				names = append(names, r.Resource)
			}
			return names
		}
		Expect(watched("deploy,Gadget", "svc", "-n", ns)).To(Equal([]string{"deployments", "gadgets", "services"}))
		Expect(watched("nodes", "-n", ns)).To(Equal([]string{"nodes"}), "which belong to no namespace")
		Expect(watched("leases", "-A")).To(Equal([]string{"leases"}))
		Expect(watched("--all")).To(And(ContainElements("pods", "nodes", "gadgets", "secrets"), Not(ContainElement("leases")), Not(ContainElement("events"))))
		expect(ctx, 3, "storm", "nosuchthings", "--for", "1s")
		expect(ctx, 3, "storm", "nodes,pods", "-n", ns, "--for", "1s")
		expect(ctx, 3, "storm", "tokenreviews", "--for", "1s")
	})

	It("says which rights are needed where there are none, and what is not seen where there are some", func(ctx SpecContext) {
		ns := namespace(ctx)
		user := reader(ctx, ns, "gadgets")
		r := quell(ctx, "storm", "configmaps", "-n", ns, "--as", user, "--for", "0")
		Expect(r.code).To(Equal(3))
		Expect(r.err).To(ContainSubstring("it takes the rights to list and watch configmaps in the namespace " + ns))
		Expect(r.err).To(ContainSubstring("forbidden"))
		out := expect(ctx, 0, "storm", "configmaps,gadgets", "-n", ns, "--as", user, "--for", "3s")
		Expect(out).To(MatchRegexp("1 of 2 resources watched\n(.|\n)*not seen:\n  configmaps: forbidden, .*"))
		r = quell(ctx, "storm", "--as", user, "--for", "1s")
		Expect(r.code).To(Equal(3))
		Expect(r.err).To(ContainSubstring("name a TYPE"))
	})

	It("refuses a report that cannot be written, before the run", func(ctx SpecContext) {
		r := quell(ctx, "storm", "gadgets", "--for", "0", "--report", filepath.Join(bin, "none", "x.html"))
		Expect(r.code).To(Equal(3))
		Expect(r.err).To(ContainSubstring("the report cannot be written"))
	})
})

// reader makes a user who may list and watch one resource of the test's group in a namespace.
func reader(ctx context.Context, ns, resource string) string {
	GinkgoHelper()
	user := "reader-of-" + ns
	kubectl(ctx, "create", "role", "reader", "-n", ns, "--verb=list,watch", "--resource="+resource+".test.quell.dev")
	kubectl(ctx, "create", "rolebinding", "reader", "-n", ns, "--role=reader", "--user="+user)
	return user
}
