package lookout

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/cluster"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/frame"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/page"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/storms"
	"github.com/hduolab/quell/controller/storm"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"
)

type flags struct {
	output        *show.Output
	rate          storms.Rate
	period        time.Duration
	allNamespaces bool
	all, custom   bool
	exitCode      bool
	page          string
}

type options struct {
	*flags
	frame *frame.Frame
	types []string
	// hasPeriod and hasNamespace are whether the user has given them.
	hasPeriod, hasNamespace bool
}

// defaultPeriod is how long is watched where nobody is there to end it.
const defaultPeriod = 30 * time.Second

// New makes the command.
func New(f *frame.Frame) *cobra.Command {
	fl := &flags{output: show.NewOutput(true), rate: storm.DefaultRate}
	cmd := &cobra.Command{
		Use:   "storm [TYPE ...]",
		Short: "Find write storms in a cluster while they go on",
		Long: `Find write storms in a cluster while they go on: the object that is written all the time, the field manager who does it, the
fields that move, and what kind of mistake it is. No audit log is needed, nothing is written, and no list of objects is read:
resources are watched from now on, for metadata only, and the objects that are written most in full until their values have
been seen. It takes about five to ten seconds to be sure of a storm.

Without TYPE it is all custom resources; --all is every resource that can be watched, but leases and events, which are
written all the time in a cluster in good order and have to be named. TYPE is looked for in the current namespace unless -A is
given; without TYPE it is all namespaces unless -n is given. It takes the rights to list and watch the resources; those that
are forbidden are told and left out.

On a terminal a table is shown anew each second until Ctrl-C. Elsewhere there is a line whenever a storm is found, changes
its verdict or ends, for 30 seconds unless --for says otherwise. In the end there is a table of all storms that were found,
with evidence and remedy.

What a watch cannot show are writes without effect, rejected writes and reads; 'kubectl quell audit' finds those.`,
		Example: `  # Does any operator of this cluster storm?
  kubectl quell storm --for 30s

  # Everything, also what belongs to Kubernetes itself, with the objects that are busy but no storm
  kubectl quell storm --all --for 30s -o wide

  # One kind in one namespace
  kubectl quell storm widgets.example.com -n shop --for 30s

  # In a pipeline: fail if there is a storm
  kubectl quell storm deployments,apps.quell.dev -A --for 30s --exit-code

  # To show to others: one page with plots, which needs no network
  kubectl quell storm --for 30s --report storm.html

  # For a script
  kubectl quell storm --for 30s -o json`,
	}
	cmd.RunE = f.Run(fl.validate, func(cmd *cobra.Command, args []string) error {
		o := options{fl, f, args, cmd.Flags().Changed("for"), cmd.Flags().Changed("namespace")}
		return o.run(cmd.Context())
	})
	cmd.ValidArgsFunction = cluster.CompleteTypesOnly(f)
	fl.output.AddFlags(cmd)
	cmd.Flags().BoolVarP(&fl.allNamespaces, "all-namespaces", "A", false, "watch all namespaces")
	cmd.Flags().BoolVar(&fl.all, "all", false, "watch every resource that can be watched, but leases and events")
	cmd.Flags().BoolVar(&fl.custom, "custom", false, "watch all custom resources, also besides TYPE; the default without TYPE")
	cmd.Flags().Var(&fl.rate, "rate", "writes of one object from which they can be a storm")
	cmd.Flags().DurationVar(&fl.period, "for", 0,
		"how long to watch, for example 30s; 0 is until Ctrl-C; without it, until Ctrl-C on a terminal and 30s elsewhere")
	cmd.Flags().BoolVar(&fl.exitCode, "exit-code", false, "exit with 1 if a storm was found at any time")
	cmd.Flags().StringVar(&fl.page, "report", "", page.Usage)
	return cmd
}

func (fl *flags) validate(args []string) error {
	switch {
	case fl.all && len(args) > 0:
		return errors.New("give either TYPE or --all")
	case fl.all && fl.custom:
		return errors.New("--all has the custom resources in it; leave --custom out")
	case fl.period < 0:
		return fmt.Errorf("--for must not be negative, is %s", fl.period)
	}
	for _, arg := range args {
		if strings.Contains(arg, "/") {
			return fmt.Errorf("%q names an object; give a TYPE", arg)
		}
	}
	return fl.output.Validate()
}

func (o options) run(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if o.page != "" {
		if err := page.Check(o.page); err != nil {
			return err
		}
	}
	scope, err := o.scope(ctx)
	if err != nil {
		return err
	}
	s, err := o.watch(ctx, scope)
	if err != nil {
		return err
	}
	return o.conclude(s)
}

// conclude tells what the session found.
func (o options) conclude(s *session) error {
	report := s.report()
	if err := o.print(report); err != nil {
		return err
	}
	if o.page != "" {
		if err := s.page(report, "kubectl quell "+o.frame.Version).Write(o.page); err != nil {
			return err
		}
		fmt.Fprintln(o.frame.ErrOut, "the report is in "+show.Escape(o.page))
	}
	if o.exitCode && len(report.Storms) > 0 {
		return frame.ErrFindings
	}
	return nil
}

func (o options) print(r Report) error {
	if o.output.IsReport() {
		return o.output.Print(r, o.frame.Out)
	}
	return r.print(o.frame.Out, o.frame.Palette(), o.output.Wide())
}

// length is how long to watch; 0 is until Ctrl-C.
func (o options) length() time.Duration {
	if !o.hasPeriod && !printers.IsTerminal(o.frame.Out) {
		return defaultPeriod
	}
	return o.period
}
