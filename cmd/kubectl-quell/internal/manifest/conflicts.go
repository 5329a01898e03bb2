package manifest

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/cluster"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/frame"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ConflictReport is the answer of kubectl quell conflicts.
type ConflictReport struct {
	APIVersion   string         `json:"apiVersion"`
	Kind         string         `json:"kind"`
	FieldManager string         `json:"fieldManager"`
	Items        []ConflictItem `json:"items"`
}

// ConflictItem is one document.
type ConflictItem struct {
	Object show.ObjectRef `json:"object"`
	// New is whether there is no live object, which has no owners then.
	New       bool       `json:"new,omitempty"`
	Conflicts []Conflict `json:"conflicts"`
	// Losses are what the owners lose to an apply with force.
	Losses []Loss `json:"losses,omitempty"`
}

// Conflict is a field that another manager owns with another value.
type Conflict struct {
	Path string `json:"path"`
	// Yours and Live are the two values, absent where there is none.
	Yours any        `json:"yours,omitempty"`
	Live  any        `json:"live,omitempty"`
	Owner show.Owner `json:"owner"`

	isYours, isLive bool
}

// Loss is a field that an owner would own no more.
type Loss struct {
	Path  string     `json:"path"`
	Owner show.Owner `json:"owner"`
}

type conflictFlags struct {
	flags
	offline bool
	live    []string
	schema  string
}

type conflictOptions struct {
	*conflictFlags
	frame *frame.Frame
	args  []string
	// stored are the live objects of an offline run.
	stored map[show.ObjectRef]*unstructured.Unstructured
	// guessed are the kinds whose schema is not known, of which it has been told.
	guessed map[schema.GroupVersionKind]bool
}

// NewConflicts makes the command.
func NewConflicts(f *frame.Frame) *cobra.Command {
	fl := &conflictFlags{}
	cmd := &cobra.Command{
		Use:   "conflicts (-f FILE | -k DIR | TYPE/NAME)",
		Short: "List the fields for which a server-side apply would be refused, with values and owners",
		Long: `List the conflicts which a server-side apply of manifests would have: the field, your value, the live one, and who
owns it. The API server is asked by a dry run; nothing is stored. For TYPE/NAME the manifest is the one that client-side
kubectl apply remembers in the object.

With --force-conflicts, what each owner would lose is listed too. With --offline, the objects of --live stand for the
cluster, and the API server's own merge, which is part of this program, is asked instead; admission, defaults and
conversion are then left out. A manifest without a namespace goes to that of -n, else to where --live has the only object of
its name. The schemas of Kubernetes' own kinds are built in; for custom resources give the OpenAPI document of their group with
--schema, or their lists are taken for atomic.

The exit code is 1 when there are conflicts, so that the command can gate a pipeline.`,
		Example: `  # May a pipeline apply this without overruling anybody
  kubectl quell conflicts -f web.yaml --field-manager ci

  # What would the others lose
  kubectl quell conflicts -f web.yaml --field-manager ci --force-conflicts

  # Can an object be taken from client-side to server-side apply
  kubectl quell conflicts deployment/web

  # Without a cluster
  kubectl get -f web.yaml -o yaml --show-managed-fields > live.yaml
  kubectl quell conflicts -f web.yaml --field-manager ci --offline --live live.yaml

  # Custom resources without a cluster
  kubectl get -f app.yaml -o yaml --show-managed-fields > live.yaml
  kubectl get --raw /openapi/v3/apis/quell.dev/v1alpha1 > schema.json
  kubectl quell conflicts -f app.yaml --field-manager ci --offline --live live.yaml --schema schema.json`,
	}
	cmd.ValidArgsFunction = cluster.CompleteTypes(f)
	cmd.RunE = f.Run(fl.validate, func(cmd *cobra.Command, args []string) error {
		fl.hint(cmd)
		return (&conflictOptions{conflictFlags: fl, frame: f, args: args, guessed: map[schema.GroupVersionKind]bool{}}).run()
	})
	fl.addFlags(cmd)
	cmd.Flags().StringVar(&fl.times, "time", string(show.Relative), "when an owner last wrote: relative, absolute or none")
	show.Choices(cmd, "time", string(show.Relative), string(show.Absolute), string(show.NoTimes))
	cmd.Flags().BoolVar(&fl.offline, "offline", false, "ask no cluster; take the live objects from --live")
	cmd.Flags().StringVar(&fl.schema, "schema", "", "OpenAPI v3 document with the schemas of custom resources, for --offline")
	cmd.Flags().StringSliceVar(&fl.live, "live", nil, "files with live objects and their managedFields, for --offline")
	return cmd
}

func (fl *conflictFlags) validate(args []string) error {
	switch {
	case fl.offline != (len(fl.live) > 0):
		return errors.New("--offline and --live FILE belong together")
	case slices.Contains(fl.live, "-") && slices.Contains(fl.selection.Files.Filenames, "-"):
		return errors.New("-f - and --live - are both the standard input: put one of them into a file")
	case fl.offline && fl.apply.Subresource != "" && fl.apply.Subresource != "status":
		return fmt.Errorf("--offline knows the subresource status only, not %q", fl.apply.Subresource)
	case fl.schema != "" && !fl.offline:
		return errors.New("--schema is for --offline: the API server knows its own")
	case fl.offline && len(args) > 0:
		return errors.New("--offline needs the manifest in a file: -f FILE")
	case !slices.Contains([]show.Times{show.Relative, show.Absolute, show.NoTimes}, show.Times(fl.times)):
		return fmt.Errorf("--time must be relative, absolute or none, is %q", fl.times)
	}
	return fl.flags.validate(args)
}

func (o *conflictOptions) run() error {
	if err := o.readStored(); err != nil {
		return err
	}
	report := ConflictReport{APIVersion: show.APIVersion, Kind: "ConflictReport", FieldManager: o.apply.Manager, Items: []ConflictItem{}}
	err := o.manifests(o.frame, o.args, o.offline, func(document cluster.Object) error {
		item, err := o.examine(document)
		if err == nil {
			report.Items = append(report.Items, item)
		}
		return err
	})
	if o.output.IsReport() {
		err = errors.Join(o.output.Print(report, o.frame.Out), err)
	} else {
		err = errors.Join(report.print(o.frame.Out, o.frame.Palette(), show.Times(o.times), o.frame.Now()), err)
		o.tellHints(o.frame, len(report.Items))
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(report.Items, func(i ConflictItem) bool { return len(i.Conflicts) > 0 }) {
		return frame.ErrFindings
	}
	return nil
}

func (o *conflictOptions) examine(document cluster.Object) (ConflictItem, error) {
	item := ConflictItem{Object: show.RefOf(document.Unstructured), Conflicts: []Conflict{}}
	live, err := o.liveOf(document)
	if err != nil || live == nil { // what is not there yet has no owners
		item.New = true
		return item, err
	}
	entries := fieldowners.Parse(live.GetManagedFields())
	o.hints.look(live, entries)
	refusal := o.try(document, live, false)
	found := fieldowners.Conflicts(refusal.err)
	if refusal.err != nil && len(found) == 0 {
		return item, fmt.Errorf("apply %s as a dry run: %w", o.target(document), refusal.err)
	}
	spellings := fieldowners.NewSpellings(entries, document.Object)
	for _, c := range found {
		item.Conflicts = append(item.Conflicts, newConflict(c, spellings, show.MaskSecret(document.Unstructured).Object, show.MaskSecret(live).Object, entries))
	}
	slices.SortFunc(item.Conflicts, func(a, b Conflict) int { return strings.Compare(a.Path+a.Owner.Manager, b.Path+b.Owner.Manager) })
	if !o.apply.Force || len(found) == 0 {
		return item, nil
	}
	forced := o.try(document, live, true)
	if forced.err != nil {
		return item, fmt.Errorf("apply %s with force as a dry run: %w", o.target(document), forced.err)
	}
	item.Losses = o.losses(entries, fieldowners.Parse(forced.object.GetManagedFields()))
	return item, nil
}

// attempt is the outcome of a dry run.
type attempt struct {
	object *unstructured.Unstructured
	err    error
}

func (o *conflictOptions) try(document cluster.Object, live *unstructured.Unstructured, force bool) attempt {
	apply := o.apply
	apply.Force = force
	if o.offline {
		object, err := o.merge(live, document.Unstructured, apply)
		return attempt{object, err}
	}
	object, err := apply.DryRun(document.Info, document.Unstructured)
	return attempt{object, err}
}

func newConflict(c fieldowners.Conflict, spellings fieldowners.Spellings, document, live map[string]any, entries []fieldowners.Entry) Conflict {
	path := spellings.Path(c)
	conflict := Conflict{Path: fieldowners.FormatPath(path), Owner: timed(entries, c.Owner)}
	conflict.Yours, conflict.isYours = fieldowners.Value(document, path)
	conflict.Live, conflict.isLive = fieldowners.Value(live, path)
	return conflict
}

func (o *conflictOptions) losses(before, after []fieldowners.Entry) []Loss {
	var losses []Loss
	for _, m := range fieldowners.Diff(before, after) {
		for _, owner := range m.Lost {
			if !managedBy(owner, o.apply) {
				losses = append(losses, Loss{fieldowners.FormatPath(m.Path), timed(before, owner)})
			}
		}
	}
	return losses
}

func (r ConflictReport) print(out io.Writer, palette show.Palette, times show.Times, now time.Time) error {
	var conflicts, losses [][]string
	names := show.Names(r.Items, func(i ConflictItem) show.ObjectRef { return i.Object })
	for n, i := range r.Items {
		for _, c := range i.Conflicts {
			values := show.Values(show.Compared{Value: c.Yours, Found: c.isYours}, show.Compared{Value: c.Live, Found: c.isLive})
			conflicts = append(conflicts, []string{names[n], c.Path, values[0], values[1], c.Owner.Line(times, now)})
		}
		for _, l := range i.Losses {
			losses = append(losses, []string{names[n], l.Path, l.Owner.Line(times, now)})
		}
	}
	if len(r.Items) == 0 {
		return nil
	}
	if len(conflicts) == 0 {
		_, err := fmt.Fprintln(out, "no conflicts in "+show.Count(len(r.Items), "object")+r.absence())
		return err
	}
	if err := show.Table(out, []string{"OBJECT", "PATH", "YOURS", "LIVE", "OWNER"}, conflicts); err != nil || len(losses) == 0 {
		return err
	}
	fmt.Fprintln(out, "\n"+palette.Warn("with force, these owners lose:"))
	return show.Table(out, []string{"OBJECT", "PATH", "LOSER"}, losses)
}

// absence tells of the objects that do not exist, which have no conflicts whatever the manifest says.
func (r ConflictReport) absence() string {
	absent := 0
	for _, i := range r.Items {
		if i.New {
			absent++
		}
	}
	switch {
	case absent == 0:
		return ""
	case len(r.Items) == 1:
		return ", which does not exist yet"
	case absent == 1:
		return ", of which 1 does not exist yet"
	}
	return fmt.Sprintf(", of which %d do not exist yet", absent)
}
