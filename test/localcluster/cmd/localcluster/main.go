// Command localcluster runs a real Kubernetes on this machine until Ctrl-C. See its -help.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/hduolab/quell/test/localcluster"
	"k8s.io/client-go/tools/clientcmd"
)

const usage = `localcluster runs a real Kubernetes on this machine, without containers or privileges, until Ctrl-C:
etcd, kube-apiserver, kube-controller-manager, kube-scheduler, and kwok, which simulates the nodes. Pods become
Ready, but nothing runs in them.

Usage:
  go run ./test/localcluster/cmd/localcluster [flags]          start, print the kubeconfig, wait for Ctrl-C
  go run ./test/localcluster/cmd/localcluster [flags] build    only build the programs that are missing

Examples:
  go run ./test/localcluster/cmd/localcluster
  go run ./test/localcluster/cmd/localcluster --control-plane-only --data-dir /tmp/mycluster

The programs are built from Go modules into the user's cache folder, once: 10 to 17 minutes on two cores, then a
start takes seconds. KUBEBUILDER_ASSETS, if set, names the folder of etcd and kube-apiserver to use instead.

Exit codes:
  0  stopped by Ctrl-C or SIGTERM, or built
  1  a build, the start or the stop failed, or a component ended by itself
  2  the command line is wrong

Flags:
`

type options struct {
	cluster    localcluster.Options
	kubeconfig string
	buildOnly  bool
}

func main() { os.Exit(exitCode(os.Args[1:])) }

func exitCode(args []string) int {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, stop, o); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		return 1
	}
	return 0
}

func parse(args []string) (options, error) {
	o := options{cluster: localcluster.Options{Log: os.Stderr}}
	flags := flag.NewFlagSet("localcluster", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	flags.BoolVar(&o.cluster.ControlPlaneOnly, "control-plane-only", false, "start etcd and kube-apiserver only: no controllers, no nodes")
	flags.StringVar(&o.cluster.DataDir, "data-dir", "", "keep the data, certificates and logs in this `folder` and continue from it next time; without it they are temporary")
	flags.StringVar(&o.cluster.AuditLog, "audit-log", "", "append the API server's audit log to this `file` instead of audit.log in the data directory")
	flags.IntVar(&o.cluster.Nodes, "nodes", 2, "`number` of simulated nodes")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "write the administrator's kubeconfig to this `file` as well; a file that localcluster did not write is never replaced")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.buildOnly = flags.NArg() == 1 && flags.Arg(0) == "build"
	return o, validate(flags, o)
}

func validate(flags *flag.FlagSet, o options) error {
	if flags.NArg() > 0 && !o.buildOnly {
		return fmt.Errorf("unexpected argument %q: the only one is build, after the flags", flags.Arg(0))
	}
	if o.cluster.Nodes < 1 {
		return fmt.Errorf("--nodes=%d: at least 1 is needed; for none use --control-plane-only", o.cluster.Nodes)
	}
	return replaceable(o.kubeconfig)
}

// replaceable refuses to overwrite a kubeconfig of the user's own.
func replaceable(path string) error {
	if path == "" {
		return nil
	}
	file, err := clientcmd.LoadFromFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil || file.CurrentContext != localcluster.ContextName || len(file.Contexts) != 1 {
		return fmt.Errorf("--kubeconfig=%s: the file exists and is not one that localcluster wrote; name another", path)
	}
	return nil
}

func run(ctx context.Context, stopSignals func(), o options) (err error) {
	if o.buildOnly {
		dir, err := localcluster.Binaries(ctx, os.Stderr)
		if err == nil {
			fmt.Printf("The programs are in %s\n", dir)
		}
		return err
	}
	cluster, err := localcluster.Start(ctx, o.cluster)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	if err := announce(cluster, o.kubeconfig); err != nil {
		return err
	}
	err = cluster.Wait(ctx)
	stopSignals() // a second Ctrl-C ends this process at once, and the kernel its children
	fmt.Fprintln(os.Stderr, "localcluster: stopping")
	return err
}

func announce(cluster *localcluster.Cluster, kubeconfig string) error {
	path := cluster.Kubeconfig()
	if kubeconfig != "" {
		var err error
		if path, err = filepath.Abs(kubeconfig); err != nil {
			return err
		}
		if err := localcluster.WriteKubeconfig(path, cluster.Config()); err != nil {
			return err
		}
	}
	fmt.Printf("Kubernetes %s is ready at %s. In another terminal:\n\n", localcluster.KubernetesVersion, cluster.Config().Host)
	fmt.Printf("export KUBECONFIG=%s\n%s get nodes\n\n", path, cluster.Kubectl())
	fmt.Printf("The audit log is %s\nCtrl-C stops it.\n", cluster.AuditLog())
	return nil
}
