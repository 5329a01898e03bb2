package handover

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/cluster"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/frame"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/spf13/cobra"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

type flags struct {
	Flags
	selection    cluster.Selection
	from         []string
	to           string
	paths        []string
	operation    string
	subresources []string
	apiVersion   string
}

type options struct {
	*flags
	frame *frame.Frame
	args  []string
	paths []fieldpath.Path
}

// NewTransfer makes the command that hands fields over.
func NewTransfer(f *frame.Frame) *cobra.Command {
	fl := &flags{}
	cmd := &cobra.Command{
		Use:   "transfer (TYPE/NAME | TYPE [NAME]) --from MANAGER --to MANAGER",
		Short: "Give fields of one field manager to another, without changing a value",
		Long: `Give the fields that some managers own to another one, which then owns them as if it had applied them, so that its
next server-side apply conflicts with none of them and removes what it leaves out. Values do not change; only
managedFields are patched, guarded by the object's uid and resourceVersion.

The difference is shown first, and a backup file is written, which 'kubectl quell restore' puts back.`,
		Example: `  # From client-side to server-side kubectl apply
  kubectl quell transfer deployment/web --from kubectl-client-side-apply --to kubectl

  # Two tools were merged into one
  kubectl quell transfer deployments -n shop --from helm,flux --to argocd --yes

  # Give one field to the autoscaler's owner
  kubectl quell transfer deployment/web --from ci --to autoscaling --path .spec.replicas

  # An operator that used to update and now applies
  kubectl quell transfer apps.quell.dev/web --from my-operator --operation Update --subresource status --to my-operator`,
	}
	fl.finish(f, cmd)
	cmd.Flags().StringSliceVar(&fl.from, "from", nil, "managers to take fields from")
	cmd.Flags().StringVar(&fl.to, "to", "", "manager to give them to")
	cmd.RunE = f.Run(func(args []string) error {
		if len(fl.from) == 0 || fl.to == "" {
			return errors.New("--from and --to are needed: see 'kubectl quell managers' for names")
		}
		return errors.Join(frame.CheckManager("--to", fl.to), fl.validate(args))
	}, fl.run(f))
	return cmd
}

// NewRelease makes the command that gives fields up.
func NewRelease(f *frame.Frame) *cobra.Command {
	fl := &flags{}
	cmd := &cobra.Command{
		Use:   "release (TYPE/NAME | TYPE [NAME]) --manager MANAGER",
		Short: "Take fields away from a field manager, without changing a value",
		Long: `Take all or some fields away from field managers. Values do not change; only managedFields are patched, guarded by
the object's uid and resourceVersion. A field that nobody owns any more stays as it is, until somebody applies it.
An object that loses its last entry has no managedFields any more, which the first apply after that makes up for: all that
it does not send then belongs to before-first-apply.

The difference is shown first, and a backup file is written, which 'kubectl quell restore' puts back.`,
		Example: `  # A tool that is gone for good
  kubectl quell release deployments -A --manager old-tool

  # Let the autoscaler's value stand
  kubectl quell release deployment/web --manager ci --path .spec.replicas

  # An entry in a version that is not served any more fails every apply
  kubectl quell release widgets.example.com/one --manager widget-operator --api-version example.com/v1beta1`,
	}
	fl.finish(f, cmd)
	cmd.Flags().StringSliceVar(&fl.from, "manager", nil, "managers to take fields from")
	cmd.RunE = f.Run(func(args []string) error {
		if len(fl.from) == 0 {
			return errors.New("--manager is needed: see 'kubectl quell managers' for names")
		}
		return fl.validate(args)
	}, fl.run(f))
	return cmd
}

// finish adds what both commands have.
func (fl *flags) finish(f *frame.Frame, cmd *cobra.Command) {
	cmd.ValidArgsFunction = cluster.CompleteTypes(f)
	fl.selection.AddSelectors(cmd)
	fl.AddFlags(cmd)
	fl.AddBackup(cmd)
	cmd.Flags().StringArrayVar(&fl.paths, "path", nil, "only this field and what is below, repeatable; for example .spec.replicas, or in quotes for the shell '.spec.ports[port=80,protocol=\"TCP\"]'")
	cmd.Flags().StringVar(&fl.operation, "operation", "", "only entries of this operation: Apply or Update")
	show.Choices(cmd, "operation", "Apply", "Update")
	cmd.Flags().StringArrayVar(&fl.subresources, "subresource", nil, `only entries of this subresource, repeatable; "" is the object itself`)
	cmd.Flags().StringVar(&fl.apiVersion, "api-version", "", "only entries in this API version, for example apps/v1")
}

func (fl *flags) validate(args []string) error {
	if !slices.Contains([]string{"", "Apply", "Update"}, fl.operation) {
		return fmt.Errorf("--operation must be Apply or Update, is %q", fl.operation)
	}
	if _, err := parsePaths(fl.paths); err != nil {
		return err
	}
	return errors.Join(fl.Flags.Validate(), fl.selection.Validate(args))
}

func parsePaths(texts []string) ([]fieldpath.Path, error) {
	var paths []fieldpath.Path
	for _, text := range texts {
		path, err := fieldowners.ParsePath(text)
		if err != nil {
			return nil, fmt.Errorf("--path: %w", err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

func (fl *flags) run(f *frame.Frame) func(*cobra.Command, []string) error {
	return func(_ *cobra.Command, args []string) error {
		paths, err := parsePaths(fl.paths)
		if err != nil {
			return err
		}
		return options{flags: fl, frame: f, args: args, paths: paths}.run()
	}
}

func (o options) run() error {
	err := o.HandOver(o.frame, &o.selection, o.args, func(cluster.Object) fieldowners.Handover {
		return fieldowners.Handover{From: o.isFrom, Paths: o.paths, To: o.to}
	})
	if errors.Is(err, fieldowners.ErrNothing) {
		if slices.ContainsFunc(o.paths, hasIndex) {
			return fmt.Errorf("%w: items of most lists are owned by their keys, as in [name=\"web\"], which 'kubectl quell blame -o yaml' shows; nothing was changed", err)
		}
		return fmt.Errorf("%w: see 'kubectl quell blame' or 'kubectl quell managers' for who does; nothing was changed", err)
	}
	return err
}

func (o options) isFrom(owner fieldowners.Owner) bool {
	return slices.Contains(o.from, owner.Manager) &&
		(o.operation == "" || o.operation == string(owner.Operation)) &&
		(len(o.subresources) == 0 || slices.Contains(o.subresources, owner.Subresource)) &&
		(o.apiVersion == "" || o.apiVersion == owner.APIVersion)
}

// hasIndex reports whether a path names an item of a list by its place.
func hasIndex(path fieldpath.Path) bool {
	return slices.ContainsFunc(path, func(e fieldpath.PathElement) bool { return e.Index != nil })
}
