package blame

import (
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/controller/fieldowners"
)

// Report is the machine-readable answer of kubectl quell blame.
type Report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Items      []Item `json:"items"`
}

// Item is one object.
type Item struct {
	Object show.ObjectRef `json:"object"`
	// Fields are the values of the object: every leaf, and every list or map that has an owner itself.
	Fields []Field `json:"fields"`
	// Absent are paths that are owned although the object does not have them.
	Absent []Field  `json:"absent,omitempty"`
	Notes  []string `json:"notes,omitempty"`
}

// Field is one path.
type Field struct {
	Path string `json:"path"`
	// Value of a leaf, or of an atomic list or map, which has one owner as a whole. Other lists and maps have none here.
	Value any `json:"value,omitempty"`
	// Owners are empty when nobody owns the field.
	Owners []show.Owner `json:"owners"`
	// Untracked fields have no owners because the API server records none for them.
	Untracked bool `json:"untracked,omitempty"`
}

func newReport(items []Item) Report {
	return Report{APIVersion: show.APIVersion, Kind: "BlameReport", Items: items}
}

func (s *subject) item(f filter, fromFile bool) Item {
	item := Item{Object: show.RefOf(s.object), Fields: []Field{}, Notes: s.notes(f, fromFile)}
	s.collect(s.Root, f, &item.Fields)
	for _, n := range s.absent(f) {
		item.Absent = append(item.Absent, Field{Path: fieldowners.FormatPath(n.Path), Owners: s.reported(n.Owners)})
	}
	return item
}

func (s *subject) collect(n *fieldowners.Node, f filter, fields *[]Field) {
	if n.Inherited {
		return
	}
	isWhole := n.IsLeaf() || n.Children[0].Inherited
	if len(n.Path) > 0 && (isWhole || len(n.Owners) > 0) && f.keeps(s.owners(n.Owners)) {
		field := Field{Path: fieldowners.FormatPath(n.Path), Owners: s.reported(n.Owners), Untracked: untracked.Has(n.Path)}
		if isWhole {
			field.Value = n.Value
		}
		*fields = append(*fields, field)
	}
	for _, c := range n.Children {
		s.collect(c, f, fields)
	}
}

func (s *subject) reported(indices []int) []show.Owner {
	owners := make([]show.Owner, len(indices))
	for i, index := range indices {
		owners[i] = show.OwnerOf(s.entries[index])
	}
	return owners
}
