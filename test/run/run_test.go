package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/app"
	"github.com/hduolab/quell/test/localcluster"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	"github.com/spf13/pflag"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// asCommand makes this test binary the command.
	asCommand = "QUELL_TEST_RUN"
	limit     = 5 * time.Minute // against hanging, not a measure

	// refused is against the CustomResourceDefinition, unplaceable asks for more than the nodes have.
	refused     = "apiVersion: quell.dev/v1alpha1\nkind: App\nmetadata: {name: refused}\nspec: {image: web, replicas: -1}"
	unplaceable = "apiVersion: quell.dev/v1alpha1\nkind: App\nmetadata: {name: unplaceable}\n" +
		"spec: {image: web, resources: {requests: {cpu: 10k}}}"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	if os.Getenv(asCommand) != "" {
		os.Exit(command(os.Args[1:]))
	}
	os.Exit(m.Run())
}

func TestParseRefuses(t *testing.T) {
	tests := map[string]struct{ arg, want string }{
		"a cluster it would have to guess": {"--cluster=kind", "the values are local and current"},
		"an empty cluster":                 {"--cluster=", "the values are local and current"},
		"no time":                          {"--timeout=0s", "must be positive"},
		"an argument":                      {"sample.yaml", "unexpected argument"},
		"an unknown flag":                  {"--nope", "unknown flag"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parse([]string{test.arg})
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.want)))
		})
	}
}

func TestHelpIsNoError(t *testing.T) {
	_, err := parse([]string{"--help"})
	NewWithT(t).Expect(errors.Is(err, pflag.ErrHelp)).To(BeTrue())
}

func TestAFileWithoutAnAppIsRefused(t *testing.T) {
	for _, text := range []string{"kind: Deployment\nmetadata: {name: web}", "kind: App", "", ":", "kind: [App]"} {
		_, err := appIn(write(t, text))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("must hold one App")), text)
	}
}

func write(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "sample.yaml")
	NewWithT(t).Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
	return path
}

// start runs the command as a process of its own.
func start(t *testing.T, kubeconfig string, args ...string) *gexec.Session {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asCommand+"=1", "KUBECONFIG="+kubeconfig)
	session, err := gexec.Start(cmd, t.Output(), t.Output())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { <-session.Terminate().Exited })
	return session
}

func TestLocalTwiceAtOnce(t *testing.T) {
	g := NewWithT(t)
	once, kept := start(t, "", "--once"), start(t, "")
	g.Eventually(once, limit).Should(gexec.Exit(0))
	expectTable(g, string(once.Out.Contents()))

	g.Eventually(kept, limit).Should(gbytes.Say("Ctrl-C stops it"))
	expectTable(g, string(kept.Out.Contents()))
	kubeconfig := group(g, kept, `export KUBECONFIG=(\S+)`)
	g.Expect(readyReplicas(t, kubeconfig)).To(BeEquivalentTo(2))

	beside := start(t, kubeconfig, "--cluster=current", "--once")
	g.Eventually(beside, limit).Should(gexec.Exit(1))
	g.Expect(beside.Err).To(gbytes.Say("the operator runs in this cluster already: .* holds Lease quell-system/quell-manager"))

	kept.Interrupt()
	g.Eventually(kept, limit).Should(gexec.Exit(0))
	g.Expect(string(kept.Out.Contents())).To(MatchRegexp(`\nstopping the operator\nstopped the operator\nstopping the cluster\nstopped the cluster\n$`))
	g.Expect(kubeconfig).NotTo(BeAnExistingFile())
}

func expectTable(g *WithT, out string) {
	g.Expect(out).To(And(
		MatchRegexp(`\[5/5 .*App default/sample is Ready`),
		MatchRegexp(`(?m)^Deployment +sample +2/2$`),
		MatchRegexp(`(?m)^Service +sample +true$`),
		MatchRegexp(`(?m)^Ready +True +AllReplicasReady +\w+$`),
	))
}

// group is the first group of a pattern in what the command said.
func group(g *WithT, session *gexec.Session, pattern string) string {
	found := regexp.MustCompile(pattern).FindSubmatch(session.Out.Contents())
	g.Expect(found).NotTo(BeNil(), pattern)
	return string(found[1])
}

func readyReplicas(t *testing.T, kubeconfig string) int32 {
	g := NewWithT(t)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	return *sample(t, config).Status.ReadyReplicas
}

func sample(t *testing.T, config *rest.Config) *quellv1alpha1.App {
	g := NewWithT(t)
	scheme := kruntime.NewScheme()
	g.Expect(app.AddToScheme(scheme)).To(Succeed())
	c, err := client.New(config, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	var live quellv1alpha1.App
	g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "sample"}, &live)).To(Succeed())
	return &live
}

func TestADyingClusterIsTold(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("finds the cluster's processes in /proc")
	}
	g := NewWithT(t)
	session := start(t, "")
	g.Eventually(session, limit).Should(gbytes.Say("Ctrl-C stops it"))
	kill(g, childOf(g, session.Command.Process.Pid, "kube-scheduler"))
	g.Eventually(session, limit).Should(gexec.Exit(1))
	g.Expect(session.Err).To(gbytes.Say("the cluster failed: kube-scheduler ended by itself"))
}

func kill(g *WithT, pid int) { g.Expect(syscall.Kill(pid, syscall.SIGKILL)).To(Succeed()) }

func childOf(g *WithT, parent int, name string) int {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	g.Expect(err).NotTo(HaveOccurred())
	for _, path := range stats {
		text, _ := os.ReadFile(path) // the process may have ended since
		if strings.Contains(string(text), fmt.Sprintf("(%s) S %d ", name, parent)) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			g.Expect(err).NotTo(HaveOccurred())
			return pid
		}
	}
	g.Expect(name).To(BeEmpty(), "no such process")
	return 0
}

func TestCurrentContext(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	g := NewWithT(t)
	c, err := localcluster.Start(t.Context(), localcluster.Options{Log: t.Output()})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(c.Stop()).To(Succeed()) })
	run := func(t *testing.T, args ...string) *gexec.Session {
		return start(t, c.Kubeconfig(), append([]string{"--cluster=current"}, args...)...)
	}

	t.Run("what was applied stays", func(t *testing.T) { appliedStays(t, c, run(t, "--once")) })
	t.Run("the API server refuses the sample", func(t *testing.T) {
		expectFailure(t, run(t, "--sample", write(t, refused)), `spec.replicas: Invalid value: -1`)
	})
	t.Run("the sample does not become Ready", func(t *testing.T) {
		session := run(t, "--sample", write(t, unplaceable), "--timeout=10s")
		expectFailure(t, session, "wait for App default/unplaceable: not Ready after 10s")
		NewWithT(t).Expect(string(session.Out.Contents())).To(And(
			ContainSubstring("The last events in namespace default"), MatchRegexp("The last lines of the operator's log:\n.+")))
	})
	t.Run("the manager's token is renewed", func(t *testing.T) { tokenIsRenewed(t, c) })
	t.Run("a dying manager is told", func(t *testing.T) { dyingManagerIsTold(t, run(t)) })
}

func appliedStays(t *testing.T, c *localcluster.Cluster, session *gexec.Session) {
	g := NewWithT(t)
	g.Eventually(session, limit).Should(gexec.Exit(0))
	out := string(session.Out.Contents())
	expectTable(g, out)
	g.Expect(out).To(And(
		ContainSubstring(`current context "quell", server `+c.Config().Host),
		ContainSubstring("--context quell delete"),
		Not(ContainSubstring("stopping the cluster")),
	))
	g.Expect(sample(t, c.Config()).Status.Phase).To(Equal(quellv1alpha1.PhaseRunning))
}

func dyingManagerIsTold(t *testing.T, session *gexec.Session) {
	g := NewWithT(t)
	g.Eventually(session, limit).Should(gbytes.Say("Ctrl-C stops it"))
	pid, err := strconv.Atoi(group(g, session, `process (\d+) is ready`))
	g.Expect(err).NotTo(HaveOccurred())
	kill(g, pid)
	expectFailure(t, session, `the manager ended by itself \(signal: killed\)`)
}

func expectFailure(t *testing.T, session *gexec.Session, message string) {
	g := NewWithT(t)
	g.Eventually(session, limit).Should(gexec.Exit(1))
	g.Expect(session.Err).To(gbytes.Say("error: (.|\n)*" + message))
}

func tokenIsRenewed(t *testing.T, c *localcluster.Cluster) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "token")
	s := &session{progress: newProgress(t.Output(), 1), cluster: &cluster{config: c.Config()}}
	expires, err := s.renew(t.Context(), file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(expires).To(BeTemporally(">", time.Now()))
	read := func() string { text, _ := os.ReadFile(file); return string(text) }
	first := read()
	go s.keepRenewing(t.Context(), file, time.Now()) // due at once
	g.Eventually(read, limit).ShouldNot(Equal(first))
	g.Expect(strings.Count(read(), ".")).To(Equal(2), "a whole token")
}

func TestWithoutAContextNothingIsGuessed(t *testing.T) {
	expectFailure(t, start(t, write(t, "apiVersion: v1\nkind: Config\n"), "--cluster=current"), "no current context in ")
}
