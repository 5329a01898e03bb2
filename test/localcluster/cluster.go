package localcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
)

const (
	defaultNodes = 2
	// stopGrace is what a component gets between SIGTERM and SIGKILL.
	stopGrace = 10 * time.Second
)

// auditPolicy has every request logged, without bodies. RequestReceived would only say again what a later stage says.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// Options say what to start. The zero value is a full cluster on temporary data.
type Options struct {
	// ControlPlaneOnly starts etcd and kube-apiserver alone, in about three seconds: no controllers, no nodes.
	ControlPlaneOnly bool
	// DataDir keeps the data, certificates and logs in this folder, so that a later start on it continues. Empty means a
	// temporary folder, removed by Stop.
	DataDir string
	// AuditLog is the file to which the API server appends its audit log, one JSON line per request (about 1 KB), never
	// rotated. Empty means audit.log in the data directory.
	AuditLog string
	// Nodes is the number of simulated nodes, node-0 and on; 0 means 2. Any Node created later is simulated as well.
	Nodes int
	// APIServerArgs are added to the API server's command line; a flag given here replaces one of the package's own.
	APIServerArgs []string
	// ControllerManagerArgs are the same for the controller manager.
	ControllerManagerArgs []string
	// Log receives progress, a line per step; nil means none. The components' own logs are files in the data directory.
	Log io.Writer
}

// Cluster is a running cluster. Its methods are safe for concurrent use; Stop, Kill and Restart wait for each other.
type Cluster struct {
	*dataDir
	options       Options
	auditLog      string
	binaries      map[string]string
	authority     *authority
	etcdAuthority *authority
	admin         *rest.Config
	etcdClient    *rest.Config
	ports         map[Component]int
	spawner       *spawner
	crashes       chan error    // the first crash; buffered, so that nobody needs to listen
	stopped       chan struct{} // closed by Stop

	mu        sync.Mutex
	processes map[Component]*process
}

// Start starts a cluster and returns when it is ready to use: the API server is ready and has the namespace default; and,
// unless it is the control plane only, the nodes are ready for Pods and the namespace has its default ServiceAccount.
// Programs that are not built yet are built first (see [Binaries]); KUBEBUILDER_ASSETS, when set, names the folder of
// etcd, kube-apiserver and perhaps kubectl instead.
//
// ctx bounds the start, not the life of the cluster. A failed start stops what it started; its error holds the last
// lines of the log of the component to blame.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	c, err := prepare(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("prepare a local cluster: %w", err)
	}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start a local cluster: %w", err), c.Stop())
	}
	return c, nil
}

func prepare(ctx context.Context, o Options) (*Cluster, error) {
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.Nodes == 0 {
		o.Nodes = defaultNodes
	}
	binaries, err := findBinaries(ctx, o.components(), o.Log)
	if err != nil {
		return nil, err
	}
	dir, err := openDataDir(ctx, o.DataDir)
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		dataDir:   dir,
		options:   o,
		binaries:  binaries,
		ports:     map[Component]int{},
		spawner:   newSpawner(),
		crashes:   make(chan error, 1),
		stopped:   make(chan struct{}),
		processes: map[Component]*process{},
	}
	if err := c.writeFiles(); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// writeFiles makes everything in the data directory that does not depend on a port.
func (c *Cluster) writeFiles() error {
	if err := c.setAuditLog(); err != nil {
		return err
	}
	if err := os.WriteFile(c.path("audit-policy.yaml"), []byte(auditPolicy), 0o600); err != nil {
		return fmt.Errorf("write the audit policy: %w", err)
	}
	if _, _, err := keyutil.LoadOrGenerateKeyFile(c.pki("service-account.key")); err != nil {
		return fmt.Errorf("make the key of the service accounts: %w", err)
	}
	var err error
	if c.authority, err = loadAuthority(c.pki(""), "cluster"); err != nil {
		return err
	}
	if c.etcdAuthority, err = loadAuthority(c.pki(""), "etcd"); err != nil {
		return err
	}
	return c.writeCertificates()
}

func (c *Cluster) setAuditLog() error {
	c.auditLog = c.path("audit.log")
	if c.options.AuditLog == "" {
		return nil
	}
	path, err := filepath.Abs(c.options.AuditLog)
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	c.auditLog = path
	return nil
}

func (c *Cluster) writeCertificates() error {
	server, err := c.authority.server("kube-apiserver")
	if err != nil {
		return err
	}
	etcd, err := c.etcdAuthority.server("etcd")
	if err != nil {
		return err
	}
	client, err := c.etcdAuthority.client("kube-apiserver", nil)
	if err != nil {
		return err
	}
	c.etcdClient = &rest.Config{TLSClientConfig: rest.TLSClientConfig{
		CAData: c.etcdAuthority.pem(), CertData: client.cert, KeyData: client.key,
	}}
	return errors.Join(
		server.write(c.pki(""), "kube-apiserver"),
		etcd.write(c.pki(""), "etcd"),
		client.write(c.pki(""), "etcd-client"),
	)
}

func (c *Cluster) start(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	started := time.Now()
	for _, name := range []Component{Etcd, APIServer} {
		if err := c.launchOnFreePort(ctx, name); err != nil {
			return err
		}
	}
	if err := c.writeKubeconfigs(); err != nil {
		return err
	}
	for _, name := range c.options.components()[2:] {
		if err := c.launch(ctx, name); err != nil {
			return err
		}
	}
	if err := c.populate(ctx); err != nil {
		return err
	}
	c.logf("ready after %s", time.Since(started).Round(time.Millisecond))
	return nil
}

// writeKubeconfigs writes the administrator's file and those of the components that are clients of the API server.
func (c *Cluster) writeKubeconfigs() error {
	if err := WriteKubeconfig(c.Kubeconfig(), c.admin); err != nil {
		return err
	}
	users := map[Component][]string{ControllerManager: nil, Scheduler: nil, Kwok: {"system:masters"}}
	for name, groups := range users {
		user := "system:" + string(name) // the names to which RBAC's built-in roles are bound
		cfg, err := c.User(user, groups...)
		if err != nil {
			return err
		}
		if err := WriteKubeconfig(c.componentKubeconfig(name), cfg); err != nil {
			return err
		}
	}
	return nil
}

// launch starts a component on the port that it has and waits until it is ready.
func (c *Cluster) launch(ctx context.Context, name Component) error {
	started := time.Now()
	if name == APIServer {
		if err := trimPartialLine(c.auditLog); err != nil {
			return err
		}
	}
	p, err := c.spawner.startProcess(name, c.command(name), c.path("logs", string(name)+".log"))
	if err != nil {
		return err
	}
	c.processes[name] = p
	if err := c.awaitReady(ctx, p); err != nil {
		return err
	}
	go c.watch(p)
	c.logf("started %s in %s", name, time.Since(started).Round(time.Millisecond))
	return nil
}

func (c *Cluster) watch(p *process) {
	<-p.ended
	if p.stopping.Load() {
		return
	}
	select {
	case c.crashes <- p.exitError():
	default: // a crash is known already, and the first one tells more
	}
}

// Wait returns nil when ctx is done or the cluster was stopped, and an error with the last lines of its log as soon as
// a component ended that neither Kill nor Restart nor Stop was asked to end. Only one caller learns of a crash.
func (c *Cluster) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-c.stopped:
		return nil
	case err := <-c.crashes:
		return err
	}
}

// Stop ends all components, clients first and etcd last, and removes temporary data. A component that does not end
// within 10 seconds is killed. A second Stop does nothing and returns nil.
func (c *Cluster) Stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.stopped:
		return nil
	default:
	}
	close(c.stopped)
	order := c.options.components()
	slices.Reverse(order)
	for _, name := range order {
		if p := c.processes[name]; p != nil {
			p.stop(stopGrace)
		}
	}
	c.spawner.close()
	return c.dataDir.close()
}

// Kill ends a component at once (SIGKILL), as a crash would, and returns when it is gone. The cluster goes on without it
// until Restart. It is an error when the component does not run.
func (c *Cluster) Kill(name Component) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.processes[name]
	if p == nil || !p.running() {
		return fmt.Errorf("kill %s: it does not run", name)
	}
	p.kill()
	return nil
}

// Restart ends a component in an orderly way, if it runs, and starts it on the same port and data. It returns when the
// component is ready; for etcd and the API server that means that the API server answers, for the others that they
// were started.
func (c *Cluster) Restart(ctx context.Context, name Component) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.stopped:
		return fmt.Errorf("restart %s: the cluster is stopped", name)
	default:
	}
	p := c.processes[name]
	if p == nil {
		return fmt.Errorf("restart %s: it is no part of this cluster", name)
	}
	p.stop(stopGrace)
	if err := c.relaunch(ctx, name); err != nil {
		return fmt.Errorf("restart %s: %w", name, err)
	}
	if server := c.processes[APIServer]; name == Etcd && server.running() {
		return c.awaitReady(ctx, server)
	}
	return nil
}

// relaunch keeps the port, so it waits for it, up to three minutes, when somebody took it meanwhile.
func (c *Cluster) relaunch(ctx context.Context, name Component) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		err := c.launch(ctx, name)
		if !errors.Is(err, errPortTaken) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pollEvery):
		}
	}
}

// Kubectl returns the path of a kubectl of the cluster's version.
func (c *Cluster) Kubectl() string { return c.binaries[kubectl] }

// DataDir returns the folder with the data, certificates and logs. Temporary data is gone after Stop.
func (c *Cluster) DataDir() string { return c.dir }

// AuditLog returns the path of the API server's audit log.
func (c *Cluster) AuditLog() string { return c.auditLog }

func (c *Cluster) logf(format string, args ...any) {
	fmt.Fprintf(c.options.Log, "localcluster: "+format+"\n", args...)
}
