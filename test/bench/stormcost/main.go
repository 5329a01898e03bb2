// Command stormcost measures what the storm detector costs, side by side in one run. See its --help.
package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/hduolab/quell/test/program"
	"github.com/spf13/cobra"
)

type options struct {
	duration, settle time.Duration
	rate             float64
	workers, rounds  int
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
		Use:   "stormcost",
		Short: "measure what the storm detector costs",
		Long: `stormcost starts an API server with etcd and measures the processor time of both and of the detector, which is a process
of its own and watches everything that can be watched: at rest and in a storm, each without the detector and with it, in turn.
What it prints is of this machine, and in a storm the programs that make it share the cores; what counts are the differences
between the phases of one run.`,
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			return run(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	flags := root.Flags()
	flags.DurationVar(&o.duration, "for", 30*time.Second, "length of each phase")
	flags.DurationVar(&o.settle, "settle", 5*time.Second, "time before each phase that does not count")
	flags.Float64Var(&o.rate, "rate", 400, "writes per second of the storm, as far as the API server can")
	flags.IntVar(&o.workers, "workers", 8, "how many programs make the storm, on an object each")
	flags.IntVar(&o.rounds, "rounds", 2, "how often each phase is measured")
	root.AddCommand(newDetect())
	return root
}

func (o options) validate() error {
	switch {
	case o.duration <= 0 || o.settle < 0:
		return fmt.Errorf("--for must be positive and --settle not negative, are %s and %s", o.duration, o.settle)
	case o.rate <= 0 || o.workers < 1 || o.rounds < 1:
		return errors.New("--rate, --workers and --rounds must be positive")
	}
	return nil
}
