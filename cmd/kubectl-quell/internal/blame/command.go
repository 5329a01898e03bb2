package blame

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/cluster"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/frame"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/spf13/cobra"
)

type flags struct {
	selection   cluster.Selection
	output      *show.Output
	filter      filter
	times       string
	showSecrets bool
}

// options are what the flags and arguments mean.
type options struct {
	*flags
	frame *frame.Frame
	args  []string
	style style
}

// New makes the command.
func New(f *frame.Frame) *cobra.Command {
	fl := &flags{output: show.NewOutput(true)}
	cmd := &cobra.Command{
		Use:   "blame (TYPE/NAME | TYPE [NAME] | -f FILE)",
		Short: "Show objects with the owners of each field in the left margin",
		Long: `Show objects as YAML with the owners of each line in the left margin: field manager, operation
(Apply or Update) and subresource, and when they last wrote.

A field with several owners has a line for each. Fields that nobody owns are marked ` + nobody + `; the margin is empty
where the API server records no owners, and for lists and maps that are owned only in their parts. What is owned
but not there is listed at the end. The data of Secrets are masked.

With -f, objects are read from files as they stand there, and no cluster is asked.`,
		Example: `  # Who owns what in a Deployment
  kubectl quell blame deployment/web

  # Only what the horizontal pod autoscaler or a person with kubectl edit has taken
  kubectl quell blame deployment/web --manager kube-controller-manager,kubectl-edit

  # Fields with more than one owner in all Services of an application
  kubectl quell blame services -l app=web --only-shared

  # An object in a file, without a cluster
  kubectl get deployment/web -o yaml --show-managed-fields | kubectl quell blame -f -

  # The owner of one field, for a script
  kubectl quell blame deployment/web -o jsonpath='{.items[0].fields[?(@.path==".spec.replicas")].owners[*].manager}'`,
	}
	cmd.ValidArgsFunction = cluster.CompleteTypes(f)
	cmd.RunE = f.Run(fl.validate, func(_ *cobra.Command, args []string) error { return fl.toOptions(f, args).run() })
	fl.addFlags(cmd)
	return cmd
}

func (fl *flags) addFlags(cmd *cobra.Command) {
	fl.selection.AddSelectors(cmd)
	fl.selection.AddFiles(cmd, "files with objects and their managedFields; - is the standard input", false)
	fl.output.AddFlags(cmd)
	cmd.Flags().StringSliceVar(&fl.filter.managers, "manager", nil, "show only what these field managers own")
	cmd.Flags().StringArrayVar(&fl.filter.subresources, "subresource", nil, `show only what was written through this subresource, repeatable; "" is the object itself`)
	cmd.Flags().BoolVar(&fl.filter.onlyShared, "only-shared", false, "show only what has more than one owner")
	cmd.Flags().StringVar(&fl.times, "time", string(show.Relative), "when an owner last wrote: relative, absolute or none")
	show.Choices(cmd, "time", string(show.Relative), string(show.Absolute), string(show.NoTimes))
	cmd.Flags().BoolVar(&fl.showSecrets, "show-secrets", false, "show the data of Secrets")
}

func (fl *flags) validate(args []string) error {
	if !slices.Contains([]show.Times{show.Relative, show.Absolute, show.NoTimes}, show.Times(fl.times)) {
		return fmt.Errorf("--time must be relative, absolute or none, is %q", fl.times)
	}
	if err := fl.output.Validate(); err != nil {
		return err
	}
	return fl.selection.Validate(args)
}

func (fl *flags) toOptions(f *frame.Frame, args []string) options {
	return options{flags: fl, frame: f, args: args, style: style{
		times: show.Times(fl.times), wide: fl.output.Wide(), palette: f.Palette(), now: f.Now(),
	}}
}

func (o options) run() error {
	schemas := cluster.NewSchemas(o.frame)
	items := []Item{}
	p := printer{options: o}
	err := o.selection.Visit(o.frame, o.args, func(object cluster.Object) error {
		s := newSubject(object.Unstructured, schemas.Structure(object), o.showSecrets)
		if o.output.IsReport() {
			items = append(items, s.item(o.filter, !object.IsLive()))
			return nil
		}
		return p.next(shown{s, !object.IsLive()})
	})
	if !o.output.IsReport() {
		return errors.Join(p.rest(), err)
	}
	if failed := o.output.Print(newReport(items), o.frame.Out); failed != nil {
		return failed
	}
	return err
}

// printer prints objects, one document after the other. A filter may leave out their names, and so has several named on top.
type printer struct {
	options
	// held is the first object that is filtered, until isMany.
	held             *shown
	isMany, hasBegun bool
}

// shown is an object to print, with whether it is from a file.
type shown struct {
	*subject
	fromFile bool
}

func (p *printer) next(s shown) error {
	if p.filter.isEmpty() || p.isMany {
		return p.print(s, !p.filter.isEmpty())
	}
	if p.held == nil {
		p.held = &s
		return nil
	}
	p.isMany = true
	return errors.Join(p.print(*p.held, true), p.print(s, true))
}

// rest prints an object that stayed the only one.
func (p *printer) rest() error {
	if p.held == nil || p.isMany {
		return nil
	}
	return p.print(*p.held, false)
}

func (p *printer) print(s shown, isNamed bool) error {
	if p.hasBegun {
		fmt.Fprintln(p.frame.Out, "---")
	}
	p.hasBegun = true
	if isNamed {
		fmt.Fprintln(p.frame.Out, "# "+cluster.Ref(s.object))
	}
	return s.print(p.frame.Out, p.filter, p.style, s.fromFile)
}
