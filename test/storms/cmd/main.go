// Command cmd makes a write storm in a cluster, of a kind to be chosen. See its --help.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/hduolab/quell/test/program"
	"github.com/hduolab/quell/test/storms"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

type options struct {
	kubeconfig, context, namespace string
	rate                           float64
	duration                       time.Duration
}

func main() { os.Exit(command(os.Args[1:])) }

func command(args []string) int {
	root := newRoot()
	root.SetArgs(args)
	return program.Run(root.ExecuteContext)
}

func newRoot() *cobra.Command {
	o := &options{}
	root := &cobra.Command{
		Use:   "storms",
		Short: "make a write storm in a cluster",
		Long: `storms makes a write storm, as operators do by mistake, in the cluster of a kubeconfig: it installs what it writes to, writes
until it is stopped, and cleans up.`,
		Example:       "  go run ./test/storms/cmd list\n  go run ./test/storms/cmd counter --for 30s",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` with the cluster (default as kubectl finds it)")
	flags.StringVar(&o.context, "context", "", "context of the kubeconfig (default its current one)")
	flags.StringVarP(&o.namespace, "namespace", "n", "", "namespace of the objects (default storm- and the name of the storm, made and deleted)")
	flags.Float64Var(&o.rate, "rate", 0, "requests per second (default that of the storm, which list shows)")
	flags.DurationVar(&o.duration, "for", 0, "how long (default until Ctrl-C)")
	root.AddCommand(newList())
	for _, s := range storms.All() {
		root.AddCommand(&cobra.Command{
			Use: s.Name, Short: s.Mistake, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd, s, *o) },
		})
	}
	return root
}

func newList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "list the storms and what should be found of each", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "STORM\tVERDICT\tMANAGERS\tFIELD\tSEEN IN\tRATE")
			for _, s := range storms.All() {
				f, seen := s.Found, "watch, audit log"
				if f.InAuditLogOnly {
					seen = "audit log"
				}
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%g/s\n", s.Name, f.Verdict, strings.Join(f.Managers, ", "), f.Field, seen, s.Rate)
			}
			return table.Flush()
		},
	}
}

func (o options) validate() error {
	if o.rate < 0 || o.duration < 0 {
		return fmt.Errorf("--rate and --for must not be negative, are %g and %s", o.rate, o.duration)
	}
	return nil
}

func (o options) config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find a cluster: %w", err)
	}
	return config, nil
}

func run(cmd *cobra.Command, s storms.Storm, o options) (err error) {
	if err := o.validate(); err != nil {
		return err
	}
	config, err := o.config()
	if err != nil {
		return err
	}
	if err := storms.Install(config); err != nil {
		return err
	}
	ctx := cmd.Context()
	defer func() { err = errors.Join(err, storms.Uninstall(context.WithoutCancel(ctx), config)) }()
	if o.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.duration)
		defer cancel()
	}
	var requests atomic.Int64
	started := time.Now()
	fmt.Fprintf(cmd.OutOrStdout(), "%s: to be found as %s by %s\n", strings.TrimSuffix(s.Mistake, "."), s.Found.Verdict, strings.Join(s.Found.Managers, " and "))
	err = s.Run(ctx, config, storms.Options{Rate: o.rate, Namespace: o.namespace, OnRequest: func() { requests.Add(1) }})
	fmt.Fprintf(cmd.OutOrStdout(), "%d requests in %s\n", requests.Load(), time.Since(started).Round(time.Second))
	return err
}
