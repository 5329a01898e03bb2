// Command bench measures Quell beside the other ways to write status and writes docs/benchmarks.md. See its --help.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/hduolab/quell/test/bench/figures"
	"github.com/hduolab/quell/test/bench/noop"
	"github.com/hduolab/quell/test/bench/report"
	"github.com/hduolab/quell/test/bench/requests"
	"github.com/hduolab/quell/test/bench/scale"
	"github.com/hduolab/quell/test/checkout"
	"github.com/hduolab/quell/test/program"
	"github.com/spf13/cobra"
)

type options struct {
	docs     string // the folder
	requests requests.Options
	noop     noop.Options
	scale    scale.Options
}

// part is one of the measurements; its figures are kept as docs/benchmarks/<name>.json.
type part struct {
	name, short string
	run         func(ctx context.Context, o options, progress io.Writer) (any, error)
}

var parts = []part{
	{"requests", "count the requests of an App's life for each way to write status (about 25 minutes)",
		func(ctx context.Context, o options, progress io.Writer) (any, error) {
			return requests.Run(ctx, o.requests, progress)
		}},
	{"noop", "measure reconciles that have nothing to write (about 10 minutes)",
		func(ctx context.Context, o options, progress io.Writer) (any, error) {
			return noop.Run(ctx, o.noop, progress)
		}},
	{"scale", "measure the operator with many Apps (about two hours)",
		func(ctx context.Context, o options, progress io.Writer) (any, error) {
			o.scale.Keep = func(f figures.Scale) error { return keep(o.docs, "scale", f) }
			return scale.Run(ctx, o.scale, progress)
		}},
}

func main() { os.Exit(command(os.Args[1:])) }

func command(args []string) int {
	root := newRoot()
	root.SetArgs(args)
	return program.Run(root.ExecuteContext)
}

func newRoot() *cobra.Command {
	var o options
	root := &cobra.Command{
		Use:   "bench",
		Short: "measure Quell beside the other ways to write status",
		Long: `bench measures each way to write status on the same job, side by side on one local control plane, keeps the figures in
docs/benchmarks/*.json and writes docs/benchmarks.md and its plots from them. Without a command it measures all, in about three
hours. What is printed is of this machine; what counts are the ratios within one run, so nothing else should run beside it.`,
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return measure(cmd, o, parts...) },
	}
	flags := root.PersistentFlags()
	flags.IntVar(&o.requests.Flaps, "flaps", 100, "requests: how often the child's availability changes in the phase of that name")
	flags.IntVar(&o.noop.Count, "count", 5, "noop: how often each benchmark is run")
	flags.StringVar(&o.scale.Profiles, "profiles", "", "scale: folder for the operator's heap profiles; by default none are kept")
	flags.IntSliceVar(&o.scale.Sizes, "sizes", []int{1000, 10000, 50000}, "scale: numbers of Apps")
	flags.IntVar(&o.scale.Foreign, "foreign", 50000, "scale: number of Deployments that are no App's")
	flags.DurationVar(&o.scale.Rest, "rest", 10*time.Minute, "scale: how long the restarted operator is watched")
	for _, p := range parts {
		root.AddCommand(&cobra.Command{
			Use: p.name, Short: p.short, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return measure(cmd, o, p) },
		})
	}
	root.AddCommand(&cobra.Command{
		Use: "page", Short: "write docs/benchmarks.md again from the figures that are kept", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return measure(cmd, o) },
	})
	return root
}

// measure runs parts, keeps the figures of each as soon as it has them, and writes the page.
func measure(cmd *cobra.Command, o options, parts ...part) error {
	root, err := checkout.Find(cmd.Context())
	if err != nil {
		return err
	}
	o.docs = filepath.Join(root, "docs")
	for _, p := range parts {
		result, err := p.run(cmd.Context(), o, cmd.OutOrStdout())
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if err := keep(o.docs, p.name, result); err != nil {
			return err
		}
	}
	if err := report.Render(o.docs); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "wrote %s\n", filepath.Join(o.docs, "benchmarks.md"))
	return nil
}

// keep writes the figures of a part, for report.Render and for whoever wants to know more than the page shows.
func keep(docs, name string, result any) error {
	raw, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(docs, "benchmarks", name+".json")
	return os.WriteFile(path, append(raw, '\n'), 0o644) //nolint:gosec // a page for all
}
