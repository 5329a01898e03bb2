package transitions

import (
	"io"
	"time"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/controller/fieldowners"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Report is the answer of kubectl quell diff-owners: one for all versions of a record, or while an object is watched one for each
// version that changes an owner.
type Report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Object in its last version; absent when there is none.
	Object show.ObjectRef `json:"object,omitzero"`
	Items  []Item         `json:"items"`
}

// Item is a field whose owners differ between one version of the object and the next.
type Item struct {
	// Time at which the version was seen, or as far as managedFields tell was written; absent when they tell none.
	Time *metav1.Time `json:"time,omitempty"`
	// ResourceVersion of the version in which it is so.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Recreated is whether the object was deleted and created anew, of which no field is told.
	Recreated bool   `json:"recreated,omitempty"`
	Path      string `json:"path,omitempty"`
	// Gained are those who own the field now and did not before, Lost those who own it no more.
	Gained []show.Owner `json:"gained,omitempty"`
	Lost   []show.Owner `json:"lost,omitempty"`
	// Before and After are the field's values, absent where there is none.
	Before any `json:"before,omitempty"`
	After  any `json:"after,omitempty"`

	move              fieldowners.Move
	wasThere, isThere bool
}

func newItem(u *unstructured.Unstructured, when time.Time) Item {
	i := Item{ResourceVersion: u.GetResourceVersion()}
	if !when.IsZero() {
		i.Time = &metav1.Time{Time: when}
	}
	return i
}

func owners(from []fieldowners.Owner) []show.Owner {
	var reported []show.Owner
	for _, o := range from {
		reported = append(reported, show.OwnerOf(fieldowners.Entry{Owner: o}))
	}
	return reported
}

// reporter makes reports of the items, instead of lines.
type reporter struct {
	out    io.Writer
	output *show.Output
	// isStream is whether each version has a report of its own, which is printed at once.
	isStream bool
	report   Report
	printed  int
}

func newReporter(out io.Writer, output *show.Output, isStream bool) *reporter {
	return &reporter{out: out, output: output, isStream: isStream, report: Report{APIVersion: show.APIVersion, Kind: "OwnerDiffReport", Items: []Item{}}}
}

func (r *reporter) tell(u *unstructured.Unstructured, items []Item) error {
	r.report.Object = show.RefOf(u)
	r.report.Items = append(r.report.Items, items...)
	if !r.isStream || len(items) == 0 {
		return nil
	}
	defer func() { r.report.Items = []Item{} }()
	return r.print()
}

// print writes the report. As with kubectl get --watch, documents of YAML are told apart by lines of ---.
func (r *reporter) print() error {
	if r.printed++; r.printed > 1 && r.output.Format == "yaml" {
		if _, err := io.WriteString(r.out, "---\n"); err != nil {
			return err
		}
	}
	return r.output.Print(r.report, r.out)
}
