package localcluster

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	eventually = 2 * time.Minute // a limit against hanging, not a measure
	namespace  = "default"
	// parentEnv makes this test binary the parent that TestAKilledParentLeavesNothing kills.
	parentEnv = "LOCALCLUSTER_TEST_PARENT"
)

func TestMain(m *testing.M) {
	if os.Getenv(parentEnv) != "" {
		os.Exit(beParent())
	}
	os.Exit(m.Run())
}

func needsCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
}

func startCluster(t *testing.T, o Options) *Cluster {
	g := NewWithT(t)
	o.Log = t.Output()
	c, err := Start(t.Context(), o)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(c.Stop()).To(Succeed()) })
	return c
}

func clientFor(t *testing.T, cfg *rest.Config) kubernetes.Interface {
	client, err := kubernetes.NewForConfig(cfg)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return client
}

func clientNamed(t *testing.T, c *Cluster, userAgent string) kubernetes.Interface {
	cfg := c.Config()
	cfg.UserAgent = userAgent
	return clientFor(t, cfg)
}

func TestFullCluster(t *testing.T) {
	needsCluster(t)
	c := startCluster(t, Options{ControllerManagerArgs: []string{"--controllers=*,token-cleaner-controller"}})
	t.Run("the controller manager has the flags it was given", func(t *testing.T) { expiredTokenIsCleaned(t, c) })
	t.Run("a Deployment becomes available", func(t *testing.T) { deploymentBecomesAvailable(t, c) })
	t.Run("a definition is waited for", func(t *testing.T) { definitionIsEstablished(t, c) })
	t.Run("requests are counted exactly", func(t *testing.T) { requestsAreCounted(t, c) })
	t.Run("large answers are counted exactly", func(t *testing.T) { largeAnswersAreCounted(t, c) })
	t.Run("a watch counts once", func(t *testing.T) { watchCountsOnce(t, c) })
	t.Run("RBAC holds for users", func(t *testing.T) { rbacHolds(t, c) })
	t.Run("a ServiceAccount's token works", func(t *testing.T) { serviceAccountWorks(t, c) })
	t.Run("kubectl works", func(t *testing.T) { kubectlWorks(t, c) })
	t.Run("processor times are known", func(t *testing.T) { processorTimesAreKnown(t, c) })
	t.Run("the API server restarts", func(t *testing.T) { apiServerRestarts(t, c) })
	t.Run("etcd is killed and comes back", func(t *testing.T) { etcdComesBack(t, c) })
	t.Run("controllers work after all that", func(t *testing.T) { deploymentBecomesAvailable(t, c) })
	t.Run("a crash is reported", func(t *testing.T) { crashIsReported(t, c) })
	t.Run("stop leaves nothing", func(t *testing.T) { stopLeavesNothing(t, c) })
}

func definitionIsEstablished(t *testing.T, c *Cluster) {
	g := NewWithT(t)
	const name = "apps.quell.dev"
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	g.Expect(WaitEstablished(ctx, c.Config(), name)).To(And(MatchError(context.DeadlineExceeded), MatchError(ContainSubstring(name))))

	out, err := exec.CommandContext(t.Context(), c.Kubectl(), "--kubeconfig="+c.Kubeconfig(), "apply", "-f", "../../config/crd/quell.dev_apps.yaml").CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))
	g.Expect(WaitEstablished(t.Context(), c.Config(), name)).To(Succeed())
	crd := clientFor(t, c.Config()).Discovery().RESTClient().Get().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", name)
	raw, err := crd.DoRaw(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(raw)).To(ContainSubstring("InitialNamesAccepted"))
}

func deploymentBecomesAvailable(t *testing.T, c *Cluster) {
	g := NewWithT(t)
	deployments := clientFor(t, c.Config()).AppsV1().Deployments(namespace)
	labels := map[string]string{"app": "web"}
	created, err := deployments.Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "web-"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
			},
		},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func(g Gomega) {
		live, err := deployments.Get(t.Context(), created.Name, metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(live.Status.AvailableReplicas).To(BeEquivalentTo(2))
	}, eventually).Should(Succeed())
	g.Expect(deployments.Delete(t.Context(), created.Name, metav1.DeleteOptions{})).To(Succeed())
}

// expiredTokenIsCleaned sees the work of a controller that does not run by default.
func expiredTokenIsCleaned(t *testing.T, c *Cluster) {
	g := NewWithT(t)
	secrets := clientFor(t, c.Config()).CoreV1().Secrets(metav1.NamespaceSystem)
	_, err := secrets.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-abcdef"},
		Type:       corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{"token-id": "abcdef", "token-secret": "0123456789abcdef", "expiration": "2020-01-01T00:00:00Z"},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() bool {
		_, err := secrets.Get(t.Context(), "bootstrap-token-abcdef", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, eventually).Should(BeTrue())
}

// requestsAreCounted sends a known number of requests of each kind at once and wants them all counted right after.
func requestsAreCounted(t *testing.T, c *Cluster) {
	g := NewWithT(t)
	const workers, rounds = 8, 25
	client := clientNamed(t, c, "counted/1").CoreV1().ConfigMaps(namespace)
	before, err := c.Mark()
	g.Expect(err).NotTo(HaveOccurred())
	var group sync.WaitGroup
	for i := range workers {
		group.Go(func() { createGetDelete(t, client, fmt.Sprintf("counted-%d", i), rounds) })
	}
	group.Wait()
	for verb, writes := range map[string]bool{"create": true, "get": false, "delete": true} {
		requests, err := c.Requests(before, ByUserAgent("counted/"), func(r Request) bool { return r.Verb == verb })
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(requests).To(HaveLen(workers*rounds), Summary(requests))
		g.Expect(Writes(requests[0])).To(Equal(writes))
	}
	g.Expect(c.Requests(before, ByUser("nobody"))).To(BeEmpty())
}

func createGetDelete(t *testing.T, client configMaps, name string, rounds int) {
	g := NewWithT(t)
	for range rounds {
		_, err := client.Create(t.Context(), configMap(name, "value"), metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		_, err = client.Get(t.Context(), name, metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(client.Delete(t.Context(), name, metav1.DeleteOptions{})).To(Succeed())
	}
}

type configMaps interface {
	Create(context.Context, *corev1.ConfigMap, metav1.CreateOptions) (*corev1.ConfigMap, error)
	Get(context.Context, string, metav1.GetOptions) (*corev1.ConfigMap, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"key": value}}
}

// largeAnswersAreCounted reads answers of several MiB, whose body is under way long before the request ends.
func largeAnswersAreCounted(t *testing.T, c *Cluster) {
	g := NewWithT(t)
	client := clientNamed(t, c, "large/1").CoreV1().ConfigMaps(namespace)
	for i := range 8 {
		_, err := client.Create(t.Context(), configMap(fmt.Sprintf("large-%d", i), strings.Repeat("x", 900<<10)), metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	}
	for range 20 {
		before, err := c.Mark()
		g.Expect(err).NotTo(HaveOccurred())
		_, err = client.List(t.Context(), metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.Requests(before, ByUserAgent("large/"))).To(HaveLen(1))
	}
}

func watchCountsOnce(t *testing.T, c *Cluster) {
	g := NewWithT(t)
	before, err := c.Mark()
	g.Expect(err).NotTo(HaveOccurred())
	client := clientNamed(t, c, "watching/1").CoreV1()
	watch, err := client.ConfigMaps(namespace).Watch(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Requests(before, ByUserAgent("watching/"))).To(HaveLen(1))
	watch.Stop()
	_, err = client.Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() (string, error) { return readFrom(c.AuditLog(), int64(before)) }, eventually).
		Should(MatchRegexp(`"stage":"ResponseComplete".*"verb":"watch".*"userAgent":"watching/1"`))
	g.Expect(c.Requests(before, ByUserAgent("watching/"))).To(HaveLen(2))
}

func rbacHolds(t *testing.T, c *Cluster) {
	g := NewWithT(t)
	cfg, err := c.User("alice", "developers")
	g.Expect(err).NotTo(HaveOccurred())
	alice := clientFor(t, cfg).CoreV1().Pods(namespace)
	_, err = alice.List(t.Context(), metav1.ListOptions{})
	g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)

	_, err = clientFor(t, c.Config()).RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "developers"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "developers"}},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() error {
		_, err := alice.List(t.Context(), metav1.ListOptions{})
		return err
	}, eventually).Should(Succeed())
}

func serviceAccountWorks(t *testing.T, c *Cluster) {
	g := NewWithT(t)
	cfg, expires, err := ServiceAccountConfig(t.Context(), c.Config(), namespace, "default")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(expires).To(BeTemporally(">", time.Now().Add(time.Hour)))
	g.Expect(cfg.CertData).To(BeEmpty())
	review, err := clientFor(t, cfg).AuthenticationV1().SelfSubjectReviews().
		Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(review.Status.UserInfo.Username).To(Equal("system:serviceaccount:default:default"))
	_, err = clientFor(t, cfg).CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
}

func kubectlWorks(t *testing.T, c *Cluster) {
	g := NewWithT(t)
	out, err := exec.CommandContext(t.Context(), c.Kubectl(), "--kubeconfig", c.Kubeconfig(), "get", "nodes", "-o", "name").CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))
	g.Expect(string(out)).To(Equal("node/node-0\nnode/node-1\n"))
}

func processorTimesAreKnown(t *testing.T, c *Cluster) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has /proc")
	}
	g := NewWithT(t)
	server, err := c.CPUTime(APIServer)
	g.Expect(err).NotTo(HaveOccurred())
	etcd, err := c.CPUTime(Etcd)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect([]time.Duration{server, etcd}).To(HaveEach(BeNumerically(">", 0)))
	g.Expect(c.CPUTime(APIServer, Etcd)).To(BeNumerically(">=", server+etcd))
	g.Eventually(func() (time.Duration, error) { return CPUTime(os.Getpid()) }, eventually).Should(BeNumerically(">", 0))
	_, err = CPUTime(-1)
	g.Expect(err).To(And(MatchError(ContainSubstring("process -1")), MatchError(os.ErrNotExist)))
}

func apiServerRestarts(t *testing.T, c *Cluster) {
	g := NewWithT(t)
	host := c.Config().Host
	before, err := c.Mark()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Restart(t.Context(), APIServer)).To(Succeed())
	g.Expect(c.Config().Host).To(Equal(host))
	_, err = clientNamed(t, c, "restarted/1").CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Requests(before, ByUserAgent("restarted/"))).To(HaveLen(1))
}

func etcdComesBack(t *testing.T, c *Cluster) {
	g := NewWithT(t)
	client := clientFor(t, c.Config()).CoreV1().ConfigMaps(namespace)
	written, err := client.Create(t.Context(), configMap("kept", "value"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Kill(Etcd)).To(Succeed())
	g.Expect(c.Kill(Etcd)).To(MatchError("kill etcd: it does not run"))
	_, err = c.CPUTime(APIServer, Etcd)
	g.Expect(err).To(MatchError("read the processor time of etcd: it does not run"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = client.Update(ctx, configMap("kept", "lost"), metav1.UpdateOptions{})
	g.Expect(err).To(HaveOccurred())

	g.Expect(c.Restart(t.Context(), Etcd)).To(Succeed())
	read, err := client.Get(t.Context(), "kept", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read.UID).To(Equal(written.UID))
	_, err = client.Update(t.Context(), configMap("kept", "again"), metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
}

func crashIsReported(t *testing.T, c *Cluster) {
	g := NewWithT(t)
	g.Expect(syscall.Kill(c.processes[Kwok].cmd.Process.Pid, syscall.SIGKILL)).To(Succeed())
	g.Expect(c.Wait(t.Context())).To(MatchError(ContainSubstring("kwok ended by itself (signal: killed)")))
	g.Expect(c.Restart(t.Context(), Kwok)).To(Succeed())
	g.Expect(c.Kill(Kwok)).To(Succeed())
	done, cancel := context.WithCancel(t.Context())
	cancel()
	g.Expect(c.Wait(done)).To(Succeed())
}

func stopLeavesNothing(t *testing.T, c *Cluster) {
	g := NewWithT(t)
	pids := c.pids()
	g.Expect(pids).To(HaveLen(5))
	g.Expect(c.Stop()).To(Succeed())
	g.Expect(pids).To(HaveEach(BeNumerically(">", 1)))
	for _, pid := range pids {
		g.Expect(syscall.Kill(pid, 0)).To(MatchError(syscall.ESRCH))
	}
	g.Expect(c.DataDir()).NotTo(BeAnExistingFile())
	g.Expect(c.Stop()).To(Succeed())
	g.Expect(c.Wait(t.Context())).To(Succeed())
	g.Expect(c.Restart(t.Context(), Etcd)).To(MatchError("restart etcd: the cluster is stopped"))
}

func (c *Cluster) pids() []int {
	var pids []int
	for _, p := range c.processes {
		pids = append(pids, p.cmd.Process.Pid)
	}
	return pids
}

func TestKeptDataContinues(t *testing.T) {
	needsCluster(t)
	g := NewWithT(t)
	o := Options{ControlPlaneOnly: true, DataDir: t.TempDir()}
	first := startCluster(t, o)
	written, err := clientFor(t, first.Config()).CoreV1().ConfigMaps(namespace).
		Create(t.Context(), configMap("kept", "value"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	alice, err := first.User("alice", "system:masters")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(first.Stop()).To(Succeed())

	second := startCluster(t, o)
	alice.Host = second.Config().Host
	read, err := clientFor(t, alice).CoreV1().ConfigMaps(namespace).Get(t.Context(), "kept", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read.UID).To(Equal(written.UID))
	t.Run("a taken port is waited for", func(t *testing.T) { takenPortIsWaitedFor(t, second) })
	t.Run("etcd is closed to users", func(t *testing.T) { etcdIsClosedToUsers(t, second, alice) })
}

func takenPortIsWaitedFor(t *testing.T, c *Cluster) {
	g := NewWithT(t)
	g.Expect(c.Kill(APIServer)).To(Succeed())
	listener, err := net.Listen("tcp", strings.TrimPrefix(c.Config().Host, "https://"))
	g.Expect(err).NotTo(HaveOccurred())
	restarted := make(chan error)
	go func() { restarted <- c.Restart(t.Context(), APIServer) }()
	log := c.path("logs", string(APIServer)+".log")
	g.Eventually(func() (string, error) { return readFrom(log, 0) }, eventually).Should(ContainSubstring("address already in use"))
	g.Expect(listener.Close()).To(Succeed())
	g.Expect(<-restarted).To(Succeed())
}

func etcdIsClosedToUsers(t *testing.T, c *Cluster, user *rest.Config) {
	g := NewWithT(t)
	cfg := rest.CopyConfig(user)
	cfg.CAData = c.etcdClient.CAData
	cfg.Host = c.etcdClient.Host
	g.Expect(probe(cfg, "/readyz")(t.Context())).NotTo(Succeed())
	log := c.path("logs", string(Etcd)+".log")
	g.Eventually(func() (string, error) { return readFrom(log, 0) }, eventually).Should(ContainSubstring("rejected connection"))
	g.Expect(probe(c.etcdClient, "/readyz")(t.Context())).To(Succeed())
}

func TestAFailedStartStopsAndTellsWhy(t *testing.T) {
	needsCluster(t)
	g := NewWithT(t)
	t.Setenv("TMPDIR", t.TempDir())
	_, err := Start(t.Context(), Options{ControlPlaneOnly: true, APIServerArgs: []string{"--no-such-flag"}})
	g.Expect(err).To(MatchError(And(ContainSubstring("kube-apiserver ended by itself"), ContainSubstring("unknown flag: --no-such-flag"))))
	g.Expect(filepath.Glob(filepath.Join(os.TempDir(), temporaryPrefix+"*"))).To(BeEmpty())
}

func TestACancelledStartStops(t *testing.T) {
	needsCluster(t)
	g := NewWithT(t)
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Start(ctx, Options{ControlPlaneOnly: true, Log: writerFunc(func(line string) {
		if strings.Contains(line, "started etcd") {
			cancel()
		}
	})})
	g.Expect(err).To(MatchError(context.Canceled))
	g.Expect(filepath.Glob(filepath.Join(os.TempDir(), temporaryPrefix+"*"))).To(BeEmpty())
}

type writerFunc func(string)

func (f writerFunc) Write(p []byte) (int, error) { f(string(p)); return len(p), nil }

// beParent starts a control plane, says which processes it has, and waits to be killed.
func beParent() int {
	c, err := Start(context.Background(), Options{ControlPlaneOnly: true})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(c.pids())
	select {}
}

func TestAKilledParentLeavesNothing(t *testing.T) {
	needsCluster(t)
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends the children of a killed parent")
	}
	g := NewWithT(t)
	temporary := t.TempDir()
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), parentEnv+"=yes", "TMPDIR="+temporary)
	output, err := parent.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(parent.Start()).To(Succeed())
	line, err := bufio.NewReader(output).ReadString('\n')
	g.Expect(err).NotTo(HaveOccurred(), line)
	var etcd, server int
	_, err = fmt.Sscanf(line, "[%d %d]", &etcd, &server)
	g.Expect(err).NotTo(HaveOccurred(), line)
	g.Expect(syscall.Kill(etcd, 0)).To(Succeed())

	g.Expect(parent.Process.Kill()).To(Succeed())
	g.Expect(parent.Wait()).To(MatchError("signal: killed"))
	for _, pid := range []int{etcd, server} {
		g.Eventually(func() bool { return alive(pid) }, eventually).Should(BeFalse())
	}
	g.Expect(removeStale(temporary)).To(Succeed())
	g.Expect(filepath.Glob(filepath.Join(temporary, temporaryPrefix+"*"))).To(BeEmpty())
}

// alive takes a zombie for dead: an orphan is reaped by whatever process 1 is, in its own time.
func alive(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && !strings.Contains(string(status), "State:\tZ")
}
