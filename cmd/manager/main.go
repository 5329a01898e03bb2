// Command manager runs Quell's controllers in or beside a cluster.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
	"github.com/hduolab/quell/controller/app"
	"github.com/hduolab/quell/controller/stormwatch"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// version is set by the build.
var version = "unknown"

const usage = `Quell's operator: applies the children of App objects and reports into their status, looks for write storms where StormWatch objects
ask for it, and writes only when something changed.

Usage:
  manager [flags]

The cluster is the one the Pod runs in, or else that of --kubeconfig, $KUBECONFIG or ~/.kube/config.
Install the CustomResourceDefinitions first: kubectl apply -f config/crd

Flags:
%s
Exit codes: 0 stopped by a signal, 1 failed, 2 wrong usage.
`

// settings are the flags.
type settings struct {
	metricsAddress, probeAddress, pprofAddress string
	insecureMetrics, leaderElect, version      bool
	leaderElectionNamespace                    string
	shard                                      app.Shard
	concurrent                                 int
	log                                        zap.Options
}

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	s, err := parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(os.Stderr, "manager: %v\nsee 'manager --help'\n", err)
		return 2
	case s.version:
		fmt.Println("quell", version)
		return 0
	}
	log := zap.New(zap.UseFlagOptions(&s.log))
	ctrl.SetLogger(log)
	klog.SetLogger(log) // client-go's own lines have the same form
	limitMemory(log)
	if err := start(s); err != nil {
		fmt.Fprintf(os.Stderr, "manager: %v\n", err)
		return 1
	}
	return 0
}

func parse(args []string) (*settings, error) {
	s := &settings{}
	flags := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.StringVar(&s.metricsAddress, "metrics-bind-address", "0", "address of the metrics endpoint, for example :8443; 0 turns it off")
	flags.BoolVar(&s.insecureMetrics, "metrics-insecure", false, "serve metrics over HTTP and to anybody; only for an address that nobody else reaches")
	flags.StringVar(&s.probeAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz; 0 turns it off")
	flags.StringVar(&s.pprofAddress, "pprof-bind-address", "0", "address of the Go profiler, for example 127.0.0.1:6060; 0 turns it off")
	flags.BoolVar(&s.leaderElect, "leader-elect", false, "run the controllers in one of several replicas only")
	flags.StringVar(&s.leaderElectionNamespace, "leader-election-namespace", "", "namespace of the leader's Lease; by default the one the Pod runs in")
	flags.StringVar((*string)(&s.shard), "shard", "", "work only on the Apps with the label "+app.LabelShard+" of this value; by default on those without that label")
	flags.IntVar(&s.concurrent, "max-concurrent-reconciles", 4, "number of Apps that are worked on at once")
	flags.BoolVar(&s.version, "version", false, "print the version and exit")
	inherited := flag.NewFlagSet("", flag.ContinueOnError)
	s.log.BindFlags(inherited)
	if kubeconfig := flag.CommandLine.Lookup("kubeconfig"); kubeconfig != nil {
		inherited.Var(kubeconfig.Value, "kubeconfig", "file that names the cluster, when not run in one")
	}
	flags.AddGoFlagSet(inherited)
	flags.Usage = func() { fmt.Printf(usage, flags.FlagUsages()) }
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	return s, s.validate(flags.Args())
}

func (s *settings) validate(rest []string) error {
	if len(rest) > 0 {
		return fmt.Errorf("unexpected argument %q", rest[0])
	}
	if host, _, err := net.SplitHostPort(s.pprofAddress); s.pprofAddress != "0" && (err != nil || !isLoopback(host)) {
		return fmt.Errorf("--pprof-bind-address must be a loopback address with a port, for example 127.0.0.1:6060, is %q", s.pprofAddress)
	}
	if err := s.shard.Validate(); err != nil {
		return fmt.Errorf("--shard: %w", err)
	}
	if s.concurrent < 1 {
		return fmt.Errorf("--max-concurrent-reconciles must be at least 1, is %d", s.concurrent)
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// limitMemory has the garbage collector work harder from nine tenths of the container's memory limit on, at which the kernel ends the
// process: while many Apps come to be, garbage is twice what lives. GOMEMLIMIT in the environment comes first.
func limitMemory(log logr.Logger) {
	switch limit, err := memlimit.Set(); {
	case err != nil: // no Linux, or no sight of its own cgroup
		log.V(1).Info("the container's memory limit is unknown; GOMEMLIMIT sets one", "reason", err.Error())
	case limit < math.MaxInt64:
		log.Info("the garbage collector keeps to a limit", "bytes", limit)
	}
}

// start runs the manager until a signal ends it.
func start(s *settings) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find a cluster: %w", err)
	}
	if s.shard != "" { // an audit log then tells the shards apart
		rest.AddUserAgent(config, "shard-"+string(s.shard))
	}
	if err := preflight(s, config); err != nil {
		return err
	}
	mgr, err := newManager(s, config)
	if err != nil {
		return err
	}
	ctx := ctrl.SetupSignalHandler()
	if err := register(ctx, mgr, s); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func preflight(s *settings, config *rest.Config) error {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	if err := app.Preflight(d); err != nil || s.shard != "" {
		return err
	}
	return stormwatch.Preflight(d)
}

func newManager(s *settings, config *rest.Config) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(app.AddToScheme(scheme), stormwatch.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	served := metricsserver.Options{BindAddress: s.metricsAddress, SecureServing: !s.insecureMetrics}
	if !s.insecureMetrics {
		served.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         s.shard.CacheOptions(),
		Metrics:                       served,
		HealthProbeBindAddress:        s.probeAddress,
		PprofBindAddress:              s.pprofAddress,
		LeaderElection:                s.leaderElect,
		LeaderElectionID:              s.leaseName(),
		LeaderElectionNamespace:       s.leaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, fmt.Errorf("set up the manager: %w", err)
	}
	return mgr, nil
}

// leaseName is that of the Lease whose holder leads; each shard has a leader of its own.
func (s *settings) leaseName() string {
	if s.shard == "" {
		return "quell-manager"
	}
	return "quell-manager-" + string(s.shard)
}

// register adds the controllers and the probes. StormWatches concern the whole cluster, so no named shard looks after them.
func register(ctx context.Context, mgr ctrl.Manager, s *settings) error {
	apps, err := app.New(app.Options{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Events: mgr.GetEventRecorder("quell"), Version: version, Shard: s.shard,
	})
	if err != nil {
		return err
	}
	if err := apps.SetupWithManager(ctx, mgr, s.concurrent); err != nil {
		return fmt.Errorf("set up the App controller: %w", err)
	}
	if s.shard == "" {
		if err := registerStormWatch(mgr); err != nil {
			return fmt.Errorf("set up the StormWatch controller: %w", err)
		}
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("caches", func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the caches have not been filled yet")
		}
		return nil
	})
}

// registerStormWatch adds the controller that watches nothing but StormWatches until there is one.
func registerStormWatch(mgr ctrl.Manager) error {
	clients, err := stormwatch.NewClients(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	storms, err := stormwatch.New(stormwatch.Options{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Clients: clients, Events: mgr.GetEventRecorder("quell"), Metrics: metrics.Registry,
	})
	if err != nil {
		return err
	}
	return storms.SetupWithManager(mgr)
}
