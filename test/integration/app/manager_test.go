package app_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/hduolab/quell/test/localcluster"
)

var _ = Describe("The manager program", Ordered, func() {
	var program, kubeconfig string
	var own *localcluster.Cluster

	BeforeAll(func(ctx SpecContext) {
		program = filepath.Join(GinkgoT().TempDir(), "manager")
		out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/hduolab/quell/cmd/manager").CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
		own, err = localcluster.Start(ctx, localcluster.Options{ControlPlaneOnly: true, Log: GinkgoWriter})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(own.Stop()).To(Succeed()) })
		for _, path := range []string{"manager/namespace.yaml", "rbac"} {
			kubectlAs(own.Kubeconfig(), "apply", "-f", filepath.Join(configDir, path))
		}
		cfg, _, err := localcluster.ServiceAccountConfig(ctx, own.Config(), "quell-system", "quell-manager")
		Expect(err).NotTo(HaveOccurred())
		kubeconfig = filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		Expect(localcluster.WriteKubeconfig(kubeconfig, cfg)).To(Succeed())
	})

	DescribeTable("tells how it is used", func(code int, words []string, args ...string) {
		result := run(program, args...)
		Expect(result.code).To(Equal(code), result.output)
		for _, word := range words {
			Expect(result.output).To(ContainSubstring(word))
		}
	},
		Entry("--help", 0, []string{"Usage:", "--leader-elect", "--kubeconfig", "kubectl apply -f config/crd", "Exit codes:"}, "--help"),
		Entry("--version", 0, []string{"quell "}, "--version"),
		Entry("an unknown flag", 2, []string{"unknown flag: --no-such-flag", "manager --help"}, "--no-such-flag"),
		Entry("a bad value", 2, []string{"--max-concurrent-reconciles", "manager --help"}, "--max-concurrent-reconciles=many"),
		Entry("a value out of range", 2, []string{"--max-concurrent-reconciles must be at least 1, is 0"}, "--max-concurrent-reconciles=0"),
		Entry("an argument", 2, []string{`unexpected argument "now"`}, "now"),
		Entry("a kubeconfig that is not there", 1, []string{"find a cluster", "no-such-file"}, "--kubeconfig=no-such-file"),
	)

	It("refuses to start without the CRD", func() {
		result := run(program, "--kubeconfig="+kubeconfig)
		Expect(result.code).To(Equal(1), result.output)
		Expect(result.output).To(ContainSubstring("kubectl apply -f config/crd"))
	})

	It("refuses to start without the status subresource", func(ctx SpecContext) {
		raw, err := os.ReadFile(filepath.Join(configDir, "crd", "quell.dev_apps.yaml"))
		Expect(err).NotTo(HaveOccurred())
		crd := &apiextensionsv1.CustomResourceDefinition{}
		Expect(yaml.Unmarshal(raw, crd)).To(Succeed())
		crd.Spec.Versions[0].Subresources = nil
		raw, err = yaml.Marshal(crd)
		Expect(err).NotTo(HaveOccurred())
		path := filepath.Join(GinkgoT().TempDir(), "crd.yaml")
		Expect(os.WriteFile(path, raw, 0o600)).To(Succeed())
		kubectlAs(own.Kubeconfig(), "apply", "-f", path)
		Expect(localcluster.WaitEstablished(ctx, own.Config(), "apps.quell.dev")).To(Succeed())

		Eventually(ctx, func(g Gomega) {
			result := run(program, "--kubeconfig="+kubeconfig)
			g.Expect(result.code).To(Equal(1), result.output)
			g.Expect(result.output).To(And(ContainSubstring(`without "apps/status"`), ContainSubstring("apply config/crd again")))
		}).Should(Succeed())
	})

	It("works under its ServiceAccount, is probed, guards its metrics, and ends with SIGTERM", func(ctx SpecContext) {
		kubectlAs(own.Kubeconfig(), "apply", "-f", filepath.Join(configDir, "crd"))
		Expect(localcluster.WaitEstablished(ctx, own.Config(), "apps.quell.dev", "stormwatches.quell.dev")).To(Succeed())
		Eventually(ctx, func() error { return kubectlCommand(own.Kubeconfig(), "get", "stormwatches").Run() }).Should(Succeed())
		Eventually(ctx, func() error { return clientAs(own.Config(), "test").Create(ctx, newApp("default", "shop")) }).Should(Succeed())
		probes, metrics := freeAddress(), freeAddress()
		var output bytes.Buffer
		cmd := exec.CommandContext(ctx, program, "--kubeconfig="+kubeconfig, "--leader-elect", "--leader-election-namespace=quell-system",
			"--health-probe-bind-address="+probes, "--metrics-bind-address="+metrics)
		cmd.Stderr = &output
		Expect(cmd.Start()).To(Succeed())
		Eventually(ctx, func(g Gomega) {
			g.Expect(get(ctx, g, "http://"+probes+"/healthz")).To(Equal(http.StatusOK))
			g.Expect(get(ctx, g, "http://"+probes+"/readyz")).To(Equal(http.StatusOK))
			g.Expect(get(ctx, g, "https://"+metrics+"/metrics")).To(Equal(http.StatusUnauthorized))
			g.Expect(kubectlAs(own.Kubeconfig(), "get", "app", "shop")).To(ContainSubstring("0/1"))
		}).Should(Succeed())

		Expect(cmd.Process.Signal(syscall.SIGTERM)).To(Succeed())
		Expect(cmd.Wait()).To(Succeed(), output.String())
		Expect(output.String()).NotTo(ContainSubstring("forbidden"))
		lines := strings.Split(strings.TrimSpace(output.String()), "\n")
		Expect(lines).To(HaveEach(HavePrefix("{")), "logs are JSON unless asked otherwise")
		Expect(kubectlAs(own.Kubeconfig(), "-n", "quell-system", "get", "lease", "quell-manager", "-o", "jsonpath={.spec.holderIdentity}")).To(BeEmpty())
		expectLeaderElection(ctx, own)
	})
})

type outcome struct {
	code   int
	output string
}

func run(program string, args ...string) outcome {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	out, _ := cmd.CombinedOutput()
	Expect(ctx.Err()).NotTo(HaveOccurred(), string(out))
	return outcome{cmd.ProcessState.ExitCode(), string(out)}
}

// get returns the HTTP status of an answer. The certificate is one that the manager makes for itself.
func get(ctx context.Context, g Gomega, url string) int {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	g.Expect(err).NotTo(HaveOccurred())
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	response, err := client.Do(request)
	g.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	return response.StatusCode
}

// freeAddress is a loopback address that nobody listened on a moment ago.
func freeAddress() string {
	GinkgoHelper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer l.Close()
	return l.Addr().String()
}
