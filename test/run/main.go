// Command run shows Quell at work: a Kubernetes, the operator and a sample App. It is what make run starts. See its --help.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/hduolab/quell/test/program"
	"github.com/spf13/pflag"
)

const usage = `run shows Quell at work: it starts a local Kubernetes and the operator, applies a sample App, prints what became of it,
and keeps everything running until Ctrl-C.

Usage:
  go run ./test/run [flags]

Examples:
  go run ./test/run                      start a local cluster; the first time its programs are built, in 10 to 17 minutes
  go run ./test/run --cluster=current    use the cluster of kubectl's current context
  go run ./test/run --once               stop as soon as the App is Ready

The operator runs as a child process with the rights of its own ServiceAccount. A local cluster leaves nothing behind; in
the current context the CRD, the RBAC rules and the App stay, and the last lines say how to remove them.

Flags:
%s
Exit codes:
  0  stopped by a signal after the App was Ready, or --once and the App was Ready
  1  something failed, ended by itself, or was stopped before the App was Ready
  2  wrong usage
`

const (
	local   = "local"
	current = "current"
)

type options struct {
	cluster string
	sample  string // empty for the one in config/samples
	timeout time.Duration
	once    bool
}

// The kernel ends the manager together with the thread that started it. This keeps main on the one thread that lives as long as
// the process.
func init() { runtime.LockOSThread() }

func main() { os.Exit(command(os.Args[1:])) }

func command(args []string) int {
	o, err := parse(args)
	if err != nil {
		return program.Refuse(err, "./test/run")
	}
	return program.RunAttached(func(ctx context.Context) error { return run(ctx, o, os.Stdout) })
}

func parse(args []string) (options, error) {
	var o options
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	flags.StringVar(&o.cluster, "cluster", local, "where to run: local starts a cluster of its own, current takes kubectl's current context")
	flags.StringVar(&o.sample, "sample", "", "`file` with the one App to apply (default config/samples/app.yaml)")
	flags.DurationVar(&o.timeout, "timeout", 3*time.Minute, "how long to wait for the App to be Ready")
	flags.BoolVar(&o.once, "once", false, "stop as soon as the App is Ready and its table is printed")
	flags.Usage = func() { fmt.Printf(usage, flags.FlagUsages()) }
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	return o.validate(flags.Args())
}

func (o options) validate(rest []string) (options, error) {
	switch {
	case len(rest) > 0:
		return o, fmt.Errorf("unexpected argument %q", rest[0])
	case o.cluster != local && o.cluster != current:
		return o, fmt.Errorf("--cluster=%s: the values are %s and %s", o.cluster, local, current)
	case o.timeout <= 0:
		return o, fmt.Errorf("--timeout must be positive, is %s", o.timeout)
	case o.sample == "":
		return o, nil
	}
	var err error
	o.sample, err = filepath.Abs(o.sample)
	return o, err
}
