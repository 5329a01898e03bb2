// Command compare counts, at one API server, what the incident's operator writes in its forms, and what Quell's writes. It is
// what make storm starts. See its --help.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/hduolab/quell/test/localcluster"
	"github.com/hduolab/quell/test/program"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const usage = `compare shows a write storm: it starts a local Kubernetes and runs, one after another, an operator that stamps the time
into status on every reconcile, in two forms, the same code on controller/ssa.StatusWriter, and Quell's operator. Each gets
the same number of objects, which nobody touches once they exist, and its requests are counted in the API server's audit log.

Usage:
  go run ./test/naive/compare [flags]

Flags:
%s
Exit codes: 0 done, 1 failed or interrupted, 2 wrong usage.
`

type options struct {
	numbers         []int
	workers         int
	warmUp, measure time.Duration
}

func main() { os.Exit(command(os.Args[1:])) }

func command(args []string) int {
	o, err := parse(args)
	if err != nil {
		return program.Refuse(err, "./test/naive/compare")
	}
	return program.Run(func(ctx context.Context) error { return run(ctx, o, os.Stdout) })
}

func parse(args []string) (options, error) {
	var o options
	flags := pflag.NewFlagSet("compare", pflag.ContinueOnError)
	flags.IntSliceVar(&o.numbers, "objects", []int{1, 50}, "how many objects there are, one run of each operator for each number")
	flags.IntVar(&o.workers, "workers", 8, "number of concurrent reconciles")
	flags.DurationVar(&o.warmUp, "warm-up", 5*time.Second, "time between the first status of the last object and the count")
	flags.DurationVar(&o.measure, "for", 15*time.Second, "how long to count")
	flags.Usage = func() { fmt.Printf(usage, flags.FlagUsages()) }
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	return o, o.validate(flags.Args())
}

func (o options) validate(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case slices.Min(o.numbers) < 1:
		return fmt.Errorf("--objects must be at least 1, is %v", o.numbers)
	case o.workers < 1:
		return fmt.Errorf("--workers must be at least 1, is %d", o.workers)
	case o.measure <= 0 || o.warmUp < 0:
		return fmt.Errorf("--for must be positive and --warm-up not negative, are %s and %s", o.measure, o.warmUp)
	}
	return nil
}

func run(ctx context.Context, o options, out io.Writer) (err error) {
	cluster, err := localcluster.Start(ctx, localcluster.Options{Log: out})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	if err := install(ctx, cluster); err != nil {
		return err
	}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	user, err := client.NewWithWatch(cluster.Config(), client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	var results []result
	for _, n := range o.numbers {
		for _, c := range contestants() {
			fmt.Fprintf(out, "measuring for %s: %s, %d objects\n", o.warmUp+o.measure, c.name, n)
			r := round{contestant: c, options: o, objects: n, cluster: cluster, user: user, versions: versions{done: map[types.UID]bool{}}}
			counted, err := r.run(ctx)
			if err != nil {
				return fmt.Errorf("%s, %d objects: %w", c.name, n, err)
			}
			results = append(results, counted)
		}
	}
	fmt.Fprintf(out, "\n%s", table(results, o))
	return nil
}
