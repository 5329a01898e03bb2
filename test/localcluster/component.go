package localcluster

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

// Component is one of the programs that make up a cluster.
type Component string

// The components, in the order in which they start. [Cluster.Stop] goes the other way.
const (
	Etcd              Component = "etcd"
	APIServer         Component = "kube-apiserver"
	ControllerManager Component = "kube-controller-manager"
	Scheduler         Component = "kube-scheduler"
	Kwok              Component = "kwok"
)

const (
	loopback       = "127.0.0.1"
	serviceCIDR    = "10.96.0.0/16"
	firstServiceIP = "10.96.0.1"
	podCIDR        = "10.244.0.0/16"
	// A benchmark of write storms fills etcd's default of 2 GiB between two compactions, which are 5 minutes apart.
	etcdQuotaBytes = 8 << 30
	// The audit log is never rotated, so that a Mark stays valid; the unit is MiB, and 0 would mean 100.
	auditMaxMiB = 1 << 20
)

// clientRate lifts client-side limits: with the default of 20 requests per second the start of some 40 controllers,
// each with a token of its own, takes 5 seconds.
var clientRate = []string{"--kube-api-qps=500", "--kube-api-burst=1000"}

func (o Options) components() []Component {
	if o.ControlPlaneOnly {
		return []Component{Etcd, APIServer}
	}
	return []Component{Etcd, APIServer, ControllerManager, Scheduler, Kwok}
}

// command returns the command line of a component. Its environment is empty but for a home: settings of the user's own
// (proxies, ~/.kube, ~/.kwok) must not reach the cluster.
func (c *Cluster) command(name Component) *exec.Cmd {
	args := map[Component]func() []string{
		Etcd:              c.etcdArgs,
		APIServer:         c.apiServerArgs,
		ControllerManager: c.controllerManagerArgs,
		Scheduler:         c.schedulerArgs,
		Kwok:              c.kwokArgs,
	}[name]
	cmd := exec.Command(c.binaries[string(name)], args()...)
	cmd.Dir = c.dir
	cmd.Env = []string{"HOME=" + c.dir, "TMPDIR=" + c.dir}
	return cmd
}

func (c *Cluster) etcdArgs() []string {
	// The peer port serves nobody: there is one member. The kernel may choose it.
	const peerURL = "https://" + loopback + ":0"
	args := []string{
		"--name=localcluster",
		"--data-dir=" + c.path("etcd"),
		"--listen-client-urls=" + c.etcdURL(),
		"--advertise-client-urls=" + c.etcdURL(),
		"--listen-peer-urls=" + peerURL,
		"--initial-advertise-peer-urls=" + peerURL,
		"--initial-cluster=localcluster=" + peerURL,
		"--client-cert-auth",
		"--trusted-ca-file=" + c.etcdAuthority.certFile,
		"--cert-file=" + c.pki("etcd.crt"),
		"--key-file=" + c.pki("etcd.key"),
		"--peer-client-cert-auth",
		"--peer-trusted-ca-file=" + c.etcdAuthority.certFile,
		"--peer-cert-file=" + c.pki("etcd.crt"),
		"--peer-key-file=" + c.pki("etcd.key"),
		fmt.Sprintf("--quota-backend-bytes=%d", int64(etcdQuotaBytes)),
		// Milliseconds. A lone member must wait for an election that nobody contests before it answers: 1 s by default.
		"--heartbeat-interval=10",
		"--election-timeout=100",
	}
	if c.temporary {
		args = append(args, "--unsafe-no-fsync")
	}
	return args
}

func (c *Cluster) apiServerArgs() []string {
	return append([]string{
		"--bind-address=" + loopback,
		"--advertise-address=" + loopback,
		fmt.Sprintf("--secure-port=%d", c.ports[APIServer]),
		"--etcd-servers=" + c.etcdURL(),
		"--etcd-cafile=" + c.etcdAuthority.certFile,
		"--etcd-certfile=" + c.pki("etcd-client.crt"),
		"--etcd-keyfile=" + c.pki("etcd-client.key"),
		"--tls-cert-file=" + c.pki("kube-apiserver.crt"),
		"--tls-private-key-file=" + c.pki("kube-apiserver.key"),
		"--client-ca-file=" + c.authority.certFile,
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + c.pki("service-account.key"),
		"--service-account-signing-key-file=" + c.pki("service-account.key"),
		"--service-cluster-ip-range=" + serviceCIDR,
		// The kubernetes Service gets no endpoints: the API refuses loopback addresses in them.
		"--endpoint-reconciler-type=none",
		// Ends watches 2 s after SIGTERM; by default the server waits a minute for them.
		"--shutdown-send-retry-after",
		"--audit-policy-file=" + c.path("audit-policy.yaml"),
		"--audit-log-path=" + c.auditLog,
		"--audit-log-mode=blocking",
		fmt.Sprintf("--audit-log-maxsize=%d", auditMaxMiB),
	}, c.options.APIServerArgs...)
}

// controllerManagerArgs and schedulerArgs turn off the HTTPS port: nobody scrapes these two here.
func (c *Cluster) controllerManagerArgs() []string {
	args := append([]string{
		"--kubeconfig=" + c.componentKubeconfig(ControllerManager),
		"--bind-address=" + loopback,
		"--secure-port=0",
		"--leader-elect=false",
		"--use-service-account-credentials",
		"--root-ca-file=" + c.authority.certFile,
		"--service-account-private-key-file=" + c.pki("service-account.key"),
		"--node-monitor-period=1s", // new nodes lose the taint not-ready in this rhythm
	}, clientRate...)
	return append(args, c.options.ControllerManagerArgs...)
}

func (c *Cluster) schedulerArgs() []string {
	return append([]string{
		"--kubeconfig=" + c.componentKubeconfig(Scheduler),
		"--bind-address=" + loopback,
		"--secure-port=0",
		"--leader-elect=false",
	}, clientRate...)
}

// kwokArgs leaves out the port of the simulated kubelets: without one kwok listens on nothing.
func (c *Cluster) kwokArgs() []string {
	return []string{
		"--kubeconfig=" + c.componentKubeconfig(Kwok),
		"--config=" + c.binaries[kwokStages],
		"--manage-all-nodes",
		// Without leases the node lifecycle controller takes the nodes for dead after 40 s: their status is renewed every
		// 10 to 20 minutes only.
		"--node-lease-duration-seconds=40",
		"--node-ip=" + loopback,
		"--cidr=" + podCIDR,
	}
}

func (c *Cluster) etcdURL() string { return fmt.Sprintf("https://%s:%d", loopback, c.ports[Etcd]) }
func (c *Cluster) serverURL() string {
	return fmt.Sprintf("https://%s:%d", loopback, c.ports[APIServer])
}

func (c *Cluster) path(elements ...string) string {
	return filepath.Join(append([]string{c.dir}, elements...)...)
}
func (c *Cluster) pki(name string) string { return c.path("pki", name) }

func (c *Cluster) componentKubeconfig(name Component) string {
	return c.path(string(name) + ".kubeconfig")
}
