// Command demo tells the story of a write storm and of its end, live and counted at a real API server. It is what make demo starts.
// See its --help.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hduolab/quell/test/program"
	"github.com/spf13/pflag"
)

const usage = `demo tells the story of a write storm in about two minutes. It starts an API server with etcd on this machine, and then:

  1 naive    an operator runs that writes the time of its last reconcile into status, on some Widgets that nobody touches
  2 named    'kubectl quell storm' finds the object, the field and the field manager behind the writes
  3 held     the same operator, its mistake included, takes over the same Widgets on controller/ssa.StatusWriter
  4 mended   the mistake is mended as the verdict says, and the operator started anew
  5 changed  somebody changes the spec of one Widget

Meanwhile it shows how many writes of the operator the API server answers each second, from its audit log, and the processor
time that API server and etcd take. In the end there is a summary, and a page with the plots for any browser.

Usage:
  go run ./test/demo [flags]

Examples:
  go run ./test/demo                              the whole story; the first time Kubernetes is built, in 10 to 17 minutes
  go run ./test/demo --objects=1 --workers=1      one Widget is enough for a storm
  go run ./test/demo --held=3m                    see how the pauses of act 3 grow: 5 s, 10 s, 20 s, ... 5 min

Flags:
%s
Ctrl-C ends it, with a page of what was measured until then. Nothing else stays behind. Processor times are measured on Linux.

Exit codes: 0 told to the end, 1 failed or interrupted, 2 wrong usage.
`

type options struct {
	objects, workers int
	// The lengths of the acts.
	naive, named, held, mended, changed time.Duration
	page                                string
}

func main() { os.Exit(command(os.Args[1:])) }

func command(args []string) int {
	o, err := parse(args)
	if err != nil {
		return program.Refuse(err, "./test/demo")
	}
	return program.RunAttached(func(ctx context.Context) error { return run(ctx, o, os.Stdout) })
}

func parse(args []string) (options, error) {
	var o options
	flags := pflag.NewFlagSet("demo", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.IntVar(&o.objects, "objects", 5, "how many Widgets there are")
	flags.IntVar(&o.workers, "workers", 8, "number of concurrent reconciles of the operator")
	flags.DurationVar(&o.naive, "naive", 25*time.Second, "length of act 1")
	flags.DurationVar(&o.named, "named", 12*time.Second, "length of act 2; it takes five to ten seconds to be sure of a storm")
	flags.DurationVar(&o.held, "held", 25*time.Second, "length of act 3")
	flags.DurationVar(&o.mended, "mended", 15*time.Second, "length of act 4")
	flags.DurationVar(&o.changed, "changed", 5*time.Second, "length of act 5")
	flags.StringVar(&o.page, "page", filepath.Join("bin", "demo.html"), "`file` to write the page to; an older one is replaced")
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
	case o.objects < 1 || o.workers < 1:
		return fmt.Errorf("--objects and --workers must be at least 1, are %d and %d", o.objects, o.workers)
	case min(o.naive, o.named, o.held, o.mended, o.changed) < time.Second:
		return fmt.Errorf("--naive, --named, --held, --mended and --changed must be at least 1s, are %s, %s, %s, %s and %s",
			o.naive, o.named, o.held, o.mended, o.changed)
	case o.page == "":
		return errors.New("--page must name a file")
	}
	return nil
}
