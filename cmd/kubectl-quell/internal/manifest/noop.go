package manifest

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/cluster"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/frame"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// NoopReport is the answer of kubectl quell noop.
type NoopReport struct {
	APIVersion   string     `json:"apiVersion"`
	Kind         string     `json:"kind"`
	FieldManager string     `json:"fieldManager"`
	Items        []NoopItem `json:"items"`
}

// NoopItem is one document.
type NoopItem struct {
	Object show.ObjectRef `json:"object"`
	// Noop is true when an apply would change nothing, not even who owns what.
	Noop bool `json:"noop"`
	// Findings keep the apply from being a no-op; Remarks do not, and tell what comes back otherwise than it was sent.
	Findings []Finding `json:"findings,omitempty"`
	Remarks  []Finding `json:"remarks,omitempty"`
}

type noopOptions struct {
	*flags
	frame   *frame.Frame
	args    []string
	schemas *cluster.Schemas
}

// NewNoop makes the command.
func NewNoop(f *frame.Frame) *cobra.Command {
	fl := &flags{}
	cmd := &cobra.Command{
		Use:   "noop (-f FILE | -k DIR | TYPE/NAME)",
		Short: "Tell whether applying manifests again would change anything, and why",
		Long: `Tell whether a server-side apply of manifests to the live objects would change anything, by a dry run. Everything but
the times in managedFields counts: an apply that only claims a field is a write, wakes every watcher, and counts.

Each path that keeps the apply from being a no-op is listed with its cause; remarks are paths which come back otherwise
than they are sent without causing a write. For TYPE/NAME the manifest is the one that client-side kubectl apply
remembers in the object. The exit code is 1 when an apply is not a no-op.

What no dry run shows: after a custom resource got a new default or storage version, the next write of each object stores it
anew, once, whatever it says.`,
		Example: `  # Is the deployed state what the manifest says, in values and owners
  kubectl quell noop -f web.yaml --field-manager ci

  # Why does an operator's status apply write each time
  kubectl quell noop -f status.yaml --field-manager my-operator --subresource status --force-conflicts`,
	}
	cmd.ValidArgsFunction = cluster.CompleteTypes(f)
	cmd.RunE = f.Run(fl.validate, func(cmd *cobra.Command, args []string) error {
		fl.hint(cmd)
		return noopOptions{flags: fl, frame: f, args: args, schemas: cluster.NewSchemas(f)}.run()
	})
	fl.addFlags(cmd)
	return cmd
}

func (o noopOptions) run() error {
	report := NoopReport{APIVersion: show.APIVersion, Kind: "NoopReport", FieldManager: o.apply.Manager, Items: []NoopItem{}}
	err := o.manifests(o.frame, o.args, false, func(document cluster.Object) error {
		item, err := o.examine(document)
		if err == nil {
			report.Items = append(report.Items, item)
		}
		return err
	})
	if o.output.IsReport() {
		err = errors.Join(o.output.Print(report, o.frame.Out), err)
	} else {
		err = errors.Join(report.print(o.frame.Out, o.frame.Palette()), err)
		o.tellHints(o.frame, len(report.Items))
	}
	if err == nil && slices.ContainsFunc(report.Items, func(i NoopItem) bool { return !i.Noop }) {
		return frame.ErrFindings
	}
	return err
}

func (o noopOptions) examine(document cluster.Object) (NoopItem, error) {
	item := NoopItem{Object: show.RefOf(document.Unstructured)}
	live, result, err := o.readAndApply(document)
	if live == nil && err == nil {
		item.Findings = []Finding{{Cause: created, Explanation: explanations[created]}}
		return item, nil
	}
	if live != nil {
		o.hints.look(live, fieldowners.Parse(live.GetManagedFields()))
	}
	if found := fieldowners.Conflicts(err); len(found) > 0 {
		item.Findings = conflictFindings(found, document.Unstructured, live)
		return item, nil
	}
	if err != nil {
		return item, err
	}
	c := &comparison{apply: o.apply, sent: document.Unstructured, live: live, result: result, structure: o.structureOf(document)}
	c.run()
	item.Findings, item.Remarks, item.Noop = c.findings, c.remarks, len(c.findings) == 0
	return item, nil
}

// attempts is how often an object that changes meanwhile is looked at.
const attempts = 10

// readAndApply reads the live object, nil when there is none, and applies to that version of it as a dry run: what others
// write in between would pass for the work of the apply.
func (o noopOptions) readAndApply(document cluster.Object) (live, result *unstructured.Unstructured, err error) {
	for range attempts {
		live, err = read(document)
		if err != nil || live == nil {
			return nil, nil, err
		}
		result, err = o.apply.DryRun(document.Info, document.Unstructured)
		if err != nil {
			return live, nil, fmt.Errorf("apply %s as a dry run: %w", o.target(document), err)
		}
		if result.GetResourceVersion() == live.GetResourceVersion() {
			return live, result, nil
		}
	}
	return nil, nil, fmt.Errorf("%s changes all the time: it was read %d times, and each time somebody wrote before the dry run", cluster.Ref(document.Unstructured), attempts)
}

func (o noopOptions) structureOf(document cluster.Object) func(*unstructured.Unstructured) *fieldpath.Set {
	return func(u *unstructured.Unstructured) *fieldpath.Set {
		return o.schemas.Structure(cluster.Object{Unstructured: u, Info: document.Info})
	}
}

func conflictFindings(conflicts []fieldowners.Conflict, document, live *unstructured.Unstructured) []Finding {
	spellings := fieldowners.NewSpellings(fieldowners.Parse(live.GetManagedFields()), document.Object)
	c := comparison{sent: document, live: live, result: live, explained: map[string]bool{}}
	for _, found := range conflicts {
		c.add(&c.findings, spellings.Path(found), conflicting)
	}
	return c.findings
}

func (r NoopReport) print(out io.Writer, palette show.Palette) error {
	names := show.Names(r.Items, func(i NoopItem) show.ObjectRef { return i.Object })
	for n, i := range r.Items {
		if i.Noop {
			fmt.Fprintln(out, names[n]+": applying it again changes nothing")
		} else {
			fmt.Fprintln(out, palette.Warn(names[n]+": applying it is not a no-op"))
		}
		if err := printFindings(out, append(slices.Clone(i.Findings), i.Remarks...)); err != nil {
			return err
		}
	}
	return nil
}

func printFindings(out io.Writer, findings []Finding) error {
	if len(findings) == 0 {
		return nil
	}
	var rows [][]string
	used := map[string]bool{}
	for _, f := range findings {
		used[f.Cause] = true
		row := []string{"  " + f.Path, f.Cause, "", "", ""}
		if f.isSent || f.isLive || f.isResult {
			sent, live, result := show.Compared{Value: f.Sent, Found: f.isSent}, show.Compared{Value: f.Live, Found: f.isLive}, show.Compared{Value: f.Result, Found: f.isResult}
			row = append(row[:2], show.Values(sent, live, result)...)
		}
		rows = append(rows, row)
	}
	if err := show.Table(out, []string{"  PATH", "CAUSE", "SENT", "LIVE", "RESULT"}, rows); err != nil {
		return err
	}
	for _, f := range findings {
		if used[f.Cause] {
			delete(used, f.Cause)
			fmt.Fprintf(out, "  %s: %s\n", f.Cause, f.Explanation)
		}
	}
	return nil
}
