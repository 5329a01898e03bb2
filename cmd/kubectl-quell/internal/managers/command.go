package managers

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/cluster"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/frame"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/handover"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/discovery"
)

type flags struct {
	selection cluster.Selection
	output    *show.Output
	writing   handover.Flags
	times     string
	pairs     bool
	fix       bool
}

type options struct {
	*flags
	frame  *frame.Frame
	args   []string
	served map[schema.GroupVersionKind]bool
}

// New makes the command.
func New(f *frame.Frame) *cobra.Command {
	fl := &flags{output: show.NewOutput(false)}
	cmd := &cobra.Command{
		Use:   "managers (TYPE/NAME | TYPE [NAME] | -f FILE)",
		Short: "List the field managers of objects, and what is wrong with their entries",
		Long: `List the entries of managedFields. For named objects: one row for each entry, and notes on entries that do harm,
with the command that mends them. For types: a summary for each field manager over all chosen objects, which are read a
page at a time. AGE is <unknown> for an entry without a time: the API server dates no scaling, and an apply only once it
changes a value.

--pairs lists which two managers own the same field: in one object they share it; in different ones, each beside the
other, they could fight over it as soon as both want it.

--fix takes away the entries in API versions that are not served any more, of which one is enough to have every apply to
its object fail. Values do not change. As with 'kubectl quell release', the difference is shown first, only managedFields
are patched, guarded by the object's uid and resourceVersion, and a backup is written, which 'kubectl quell restore' can
put back once the version is served again.`,
		Example: `  # Who manages a Deployment, and is it in order
  kubectl quell managers deployment/web

  # Which tools write to the Deployments and Services of the cluster
  kubectl quell managers deployments,services -A

  # The same for a script
  kubectl quell managers deployments,services -A -o json

  # Who meets whom in which fields
  kubectl quell managers deployments -A --pairs

  # A version of a custom resource was dropped, and applies fail since
  kubectl quell managers widgets.example.com -A --fix`,
	}
	cmd.ValidArgsFunction = cluster.CompleteTypes(f)
	cmd.RunE = f.Run(fl.validate, func(_ *cobra.Command, args []string) error { return fl.toOptions(f, args).run() })
	fl.selection.AddSelectors(cmd)
	fl.selection.AddFiles(cmd, "files with objects and their managedFields; - is the standard input", false)
	fl.output.AddFlags(cmd)
	cmd.Flags().StringVar(&fl.times, "time", string(show.Relative), "when a manager last wrote: relative or absolute")
	show.Choices(cmd, "time", string(show.Relative), string(show.Absolute))
	cmd.Flags().BoolVar(&fl.pairs, "pairs", false, "list the pairs of managers that own the same fields")
	cmd.Flags().BoolVar(&fl.fix, "fix", false, "take away the entries in API versions that are not served any more")
	fl.writing.AddFlags(cmd)
	fl.writing.AddBackup(cmd)
	return cmd
}

func (fl *flags) validate(args []string) error {
	if !slices.Contains([]show.Times{show.Relative, show.Absolute}, show.Times(fl.times)) {
		return fmt.Errorf("--time must be relative or absolute, is %q", fl.times)
	}
	if err := fl.output.Validate(); err != nil {
		return err
	}
	if fl.fix && (fl.pairs || fl.output.Format != "" || fl.selection.FromFiles()) {
		return errors.New("--fix changes objects in the cluster, so it goes without --pairs, -o and -f")
	}
	if !fl.fix && fl.writing.Given() {
		return errors.New("--dry-run, --backup and --yes are for --fix: without it nothing is changed")
	}
	return errors.Join(fl.writing.Validate(), fl.selection.Validate(args))
}

func (fl *flags) toOptions(f *frame.Frame, args []string) options {
	fl.selection.MetadataOnly = !fl.selection.FromFiles() && !fl.fix
	return options{flags: fl, frame: f, args: args, served: map[schema.GroupVersionKind]bool{}}
}

func (o options) run() error {
	switch {
	case o.fix:
		return o.runFix()
	case o.pairs:
		return o.runPairs()
	case o.selection.FromFiles() || cluster.Named(o.args):
		return o.runEntries()
	}
	return o.runSummary()
}

func (o options) runEntries() error {
	report := Report{APIVersion: show.APIVersion, Kind: "ManagerReport", Items: []Item{}}
	err := o.selection.Visit(o.frame, o.args, func(object cluster.Object) error {
		report.Items = append(report.Items, newItem(object, o.isServed))
		return nil
	})
	if o.output.IsReport() {
		return errors.Join(o.output.Print(report, o.frame.Out), err)
	}
	names := show.Names(report.Items, func(i Item) show.ObjectRef { return i.Object })
	for i, item := range report.Items {
		if len(report.Items) > 1 {
			fmt.Fprintln(o.frame.Out, separator(i)+names[i])
		}
		if failed := item.print(o.frame.Out, o.frame.Palette(), show.Times(o.times), o.frame.Now()); failed != nil {
			return failed
		}
	}
	return err
}

func (o options) runFix() error {
	err := o.writing.HandOver(o.frame, &o.selection, o.args, func(object cluster.Object) fieldowners.Handover {
		return fieldowners.Handover{From: func(owner fieldowners.Owner) bool { return !o.isServed(object, owner.APIVersion) }}
	})
	if errors.Is(err, fieldowners.ErrNothing) {
		fmt.Fprintln(o.frame.Out, "nothing to mend: all entries are in versions that are served")
		return nil
	}
	return err
}

func separator(i int) string {
	if i == 0 {
		return ""
	}
	return "\n"
}

func (o options) runSummary() error {
	tally := newTally()
	err := o.visit(func(object cluster.Object) { tally.add(newItem(object, o.isServed)) })
	summary := tally.summary()
	if o.output.IsReport() {
		return errors.Join(o.output.Print(summary, o.frame.Out), err)
	}
	return errors.Join(summary.print(o.frame.Out, o.frame.Palette(), show.Times(o.times), o.frame.Now()), err)
}

func (o options) runPairs() error {
	pairing := newPairing()
	err := o.visit(pairing.add)
	pairs := pairing.pairs()
	if o.output.IsReport() {
		return errors.Join(o.output.Print(pairs, o.frame.Out), err)
	}
	return errors.Join(pairs.print(o.frame.Out), err)
}

// visit reads the selection and tells a person at a terminal how far it is.
func (o options) visit(fn func(cluster.Object)) error {
	const step = 500
	n := 0
	isWatched := printers.IsTerminal(o.frame.ErrOut)
	err := o.selection.Visit(o.frame, o.args, func(object cluster.Object) error {
		if n++; isWatched && n%step == 0 {
			fmt.Fprintf(o.frame.ErrOut, "\r%d objects read", n)
		}
		fn(object)
		return nil
	})
	if isWatched && n >= step {
		fmt.Fprint(o.frame.ErrOut, "\r\x1b[K")
	}
	return err
}

// isServed asks the API server's discovery once for each kind and version, past kubectl's cache, which may be hours old. In
// doubt a version is served.
func (o options) isServed(object cluster.Object, apiVersion string) bool {
	if apiVersion == "" || apiVersion == object.GetAPIVersion() {
		return true
	}
	gvk := schema.FromAPIVersionAndKind(apiVersion, object.GetKind())
	served, known := o.served[gvk]
	if !known {
		served = discovers(o.frame, gvk)
		o.served[gvk] = served
	}
	return served
}

func discovers(f *frame.Frame, gvk schema.GroupVersionKind) bool {
	config, err := f.Config.ToRESTConfig()
	if err != nil {
		return true
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return true
	}
	resources, err := client.ServerResourcesForGroupVersion(gvk.GroupVersion().String())
	if err != nil {
		return !apierrors.IsNotFound(err)
	}
	return slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Kind == gvk.Kind })
}
