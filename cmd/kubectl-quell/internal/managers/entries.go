package managers

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/cluster"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/controller/fieldowners"
)

// Report is the answer for single objects.
type Report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Items      []Item `json:"items"`
}

// Item is one object.
type Item struct {
	Object  show.ObjectRef `json:"object"`
	Entries []Entry        `json:"entries"`
	Notes   []Note         `json:"notes,omitempty"`
}

// Entry is one entry of managedFields.
type Entry struct {
	show.Owner `json:",inline"`
	// Fields is the number of owned paths.
	Fields int `json:"fields"`
	// Bytes is the size of the field set.
	Bytes int `json:"bytes"`
}

func newItem(o cluster.Object, isServed func(cluster.Object, string) bool) Item {
	managed := o.GetManagedFields()
	j := judge{object: o, entries: fieldowners.Parse(managed), isServed: isServed}
	item := Item{Object: show.RefOf(o.Unstructured), Entries: []Entry{}}
	for i, e := range j.entries {
		size := 0
		if managed[i].FieldsV1 != nil {
			size = len(managed[i].FieldsV1.GetRawBytes())
		}
		j.sizes = append(j.sizes, size)
		item.Entries = append(item.Entries, Entry{Owner: show.OwnerOf(e), Fields: e.Fields.Size(), Bytes: size})
	}
	item.Notes = j.notes()
	return item
}

func (i Item) print(out io.Writer, palette show.Palette, times show.Times, now time.Time) error {
	heading := []string{"MANAGER", "OPERATION", "SUBRESOURCE", "VERSION", "FIELDS", "AGE"}
	var rows [][]string
	for _, e := range i.Entries {
		rows = append(rows, []string{e.Manager, e.Operation, e.Subresource, e.APIVersion, strconv.Itoa(e.Fields), times.Known(e.Time, now)})
	}
	if err := show.Table(out, heading, rows); err != nil {
		return err
	}
	for _, n := range i.Notes {
		fmt.Fprintln(out, palette.Warn("note: "+show.Escape(n.Message)))
		if n.Fix != "" {
			fmt.Fprintln(out, "      mend it with: "+show.Escape(n.Fix))
		}
	}
	return nil
}
