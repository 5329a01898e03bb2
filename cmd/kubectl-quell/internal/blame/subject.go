package blame

import (
	"maps"
	"slices"
	"strings"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/controller/fieldowners"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// subject is one object under inspection.
type subject struct {
	object  *unstructured.Unstructured
	entries []fieldowners.Entry
	fieldowners.Attribution
}

func newSubject(u *unstructured.Unstructured, structure *fieldpath.Set, showSecrets bool) *subject {
	s := &subject{object: u, entries: fieldowners.Parse(u.GetManagedFields())}
	if !showSecrets {
		u = show.MaskSecret(u)
	}
	s.Attribution = fieldowners.Attribute(u.Object, s.entries, structure)
	return s
}

// untracked are the fields whose owners the API server does not record
// (k8s.io/apimachinery/pkg/util/managedfields/internal, stripmeta.go).
var untracked = fieldpath.NewSet(
	fieldpath.MakePathOrDie("apiVersion"),
	fieldpath.MakePathOrDie("kind"),
	fieldpath.MakePathOrDie("metadata"),
	fieldpath.MakePathOrDie("metadata", "name"),
	fieldpath.MakePathOrDie("metadata", "namespace"),
	fieldpath.MakePathOrDie("metadata", "creationTimestamp"),
	fieldpath.MakePathOrDie("metadata", "selfLink"),
	fieldpath.MakePathOrDie("metadata", "uid"),
	fieldpath.MakePathOrDie("metadata", "clusterName"),
	fieldpath.MakePathOrDie("metadata", "generation"),
	fieldpath.MakePathOrDie("metadata", "managedFields"),
	fieldpath.MakePathOrDie("metadata", "resourceVersion"),
)

// isOrphan reports whether nobody owns a value that could have an owner.
func isOrphan(n *fieldowners.Node) bool {
	return n.IsLeaf() && len(n.Owners) == 0 && !untracked.Has(n.Path)
}

// filter chooses among the owned fields.
type filter struct {
	managers, subresources []string
	onlyShared             bool
}

func (f filter) isEmpty() bool {
	return len(f.managers) == 0 && len(f.subresources) == 0 && !f.onlyShared
}

// keepsOwner reports whether an owner is one of those asked for. The object itself is the subresource "".
func (f filter) keepsOwner(o fieldowners.Owner) bool {
	return (len(f.managers) == 0 || slices.Contains(f.managers, o.Manager)) &&
		(len(f.subresources) == 0 || slices.Contains(f.subresources, o.Subresource))
}

// keeps reports whether a field with these owners is one of those asked for.
func (f filter) keeps(owners []fieldowners.Owner) bool {
	if f.isEmpty() {
		return true
	}
	return (!f.onlyShared || len(owners) > 1) && slices.ContainsFunc(owners, f.keepsOwner)
}

// keepsTree reports whether a value or something in it is asked for.
func (s *subject) keepsTree(n *fieldowners.Node, f filter) bool {
	return f.isEmpty() || f.keeps(s.owners(n.Owners)) ||
		slices.ContainsFunc(n.Children, func(c *fieldowners.Node) bool { return s.keepsTree(c, f) })
}

func (s *subject) owners(indices []int) []fieldowners.Owner {
	owners := make([]fieldowners.Owner, len(indices))
	for i, index := range indices {
		owners[i] = s.entries[index].Owner
	}
	return owners
}

// absent lists the paths asked for that are owned and not there, with the indices of their owners, sorted by path.
func (s *subject) absent(f filter) []*fieldowners.Node {
	found := map[string]*fieldowners.Node{}
	for i, e := range s.entries {
		s.Absent(e).Iterate(func(p fieldpath.Path) {
			key := fieldowners.FormatPath(p)
			if found[key] == nil {
				found[key] = &fieldowners.Node{Path: p.Copy()}
			}
			found[key].Owners = append(found[key].Owners, i)
		})
	}
	maps.DeleteFunc(found, func(_ string, n *fieldowners.Node) bool { return !f.keeps(s.owners(n.Owners)) })
	return slices.SortedFunc(maps.Values(found), func(a, b *fieldowners.Node) int { return a.Path.Compare(b.Path) })
}

// notes are what has to be known to read the margin right.
func (s *subject) notes(f filter, fromFile bool) []string {
	var notes []string
	if len(s.entries) > 0 && !s.keepsTree(s.Root, f) && len(s.absent(f)) == 0 {
		var all []string
		for _, e := range s.entries {
			all = append(all, e.String())
		}
		notes = append(notes, "no field is what the flags ask for; the owners are "+strings.Join(all, ", "))
	}
	if len(s.entries) == 0 {
		notes = append(notes, "the object has no managedFields, so nobody is known to own anything")
		if fromFile {
			notes = append(notes, "files have them when written with kubectl get --show-managed-fields -o yaml")
		}
	}
	for _, e := range s.entries {
		if e.Unknown != nil {
			notes = append(notes, "the entry of "+e.String()+" cannot be read: "+e.Unknown.Error())
		} else if v := s.object.GetAPIVersion(); e.APIVersion != v && e.APIVersion != "" {
			notes = append(notes, "the entry of "+e.String()+" is in "+e.APIVersion+", the object is shown in "+v+": paths that differ between them are listed as absent")
		}
	}
	return notes
}
