package managers

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/cluster"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/controller/fieldowners"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// maxPaths bounds the memory of the search for pairs: paths beyond it, of one kind, are counted and left out.
const maxPaths = 20_000

// Pairs are the managers that meet in the same fields.
type Pairs struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Objects    int    `json:"objects"`
	Pairs      []Pair `json:"pairs"`
	// LeftOut is the number of times a path was not looked at because there were too many.
	LeftOut int `json:"leftOut,omitempty"`
}

// Pair is two managers that own the same path, in one object or in different ones.
type Pair struct {
	ObjectKind string `json:"objectKind"`
	// Path with [*] for any item of a list.
	Path string     `json:"path"`
	One  show.Owner `json:"one"`
	Two  show.Owner `json:"two"`
	// Shared is the number of objects in which both own the path, OnlyOne and OnlyTwo that in which one of them does while
	// the other owns other fields of the same object.
	Shared  int `json:"shared"`
	OnlyOne int `json:"onlyOne"`
	OnlyTwo int `json:"onlyTwo"`
}

type place struct{ kind, path string }

// meeting is what is known of two managers in one place; its owners are in order.
type meeting struct{ one, two show.Owner }

type counts struct{ shared, onlyOne, onlyTwo int }

type pairing struct {
	objects, leftOut int
	paths            map[string]int
	// owners of a place, in any object.
	owners   map[place]map[show.Owner]bool
	meetings map[place]map[meeting]*counts
}

func newPairing() *pairing {
	return &pairing{paths: map[string]int{}, owners: map[place]map[show.Owner]bool{}, meetings: map[place]map[meeting]*counts{}}
}

func (p *pairing) add(o cluster.Object) {
	p.objects++
	all := map[show.Owner]bool{}
	owned := map[place]map[show.Owner]bool{}
	for _, e := range fieldowners.Parse(o.GetManagedFields()) {
		owner := show.Owner{Manager: e.Manager, Operation: string(e.Operation), Subresource: e.Subresource}
		all[owner] = true
		e.Fields.Leaves().Iterate(func(path fieldpath.Path) {
			at := place{o.GetKind(), general(path)}
			if owned[at] == nil {
				owned[at] = map[show.Owner]bool{}
			}
			owned[at][owner] = true
		})
	}
	for at, owners := range owned {
		p.count(at, owners, all)
	}
}

// count notes who of all managers of one object owns a path.
func (p *pairing) count(at place, owners, all map[show.Owner]bool) {
	if p.owners[at] == nil {
		if p.paths[at.kind] == maxPaths {
			p.leftOut++
			return
		}
		p.paths[at.kind]++
		p.owners[at], p.meetings[at] = map[show.Owner]bool{}, map[meeting]*counts{}
	}
	for owner := range owners {
		p.owners[at][owner] = true
		for other := range all {
			if other.Manager != owner.Manager && (!owners[other] || compareOwners(owner, other) < 0) {
				p.meet(at, owner, other, owners[other])
			}
		}
	}
}

func (p *pairing) meet(at place, owner, other show.Owner, shared bool) {
	m := meeting{owner, other}
	swapped := compareOwners(owner, other) > 0
	if swapped {
		m = meeting{other, owner}
	}
	c := p.meetings[at][m]
	if c == nil {
		c = &counts{}
		p.meetings[at][m] = c
	}
	switch {
	case shared:
		c.shared++
	case swapped:
		c.onlyTwo++
	default:
		c.onlyOne++
	}
}

// pairs keeps the meetings of two that each own the path somewhere.
func (p *pairing) pairs() Pairs {
	found := Pairs{APIVersion: show.APIVersion, Kind: "ManagerPairs", Objects: p.objects, Pairs: []Pair{}, LeftOut: p.leftOut}
	for at, meetings := range p.meetings {
		for m, c := range meetings {
			if p.owners[at][m.one] && p.owners[at][m.two] {
				found.Pairs = append(found.Pairs, Pair{at.kind, at.path, m.one, m.two, c.shared, c.onlyOne, c.onlyTwo})
			}
		}
	}
	slices.SortFunc(found.Pairs, func(a, b Pair) int {
		return cmp.Or(cmp.Compare(b.Shared, a.Shared), strings.Compare(a.ObjectKind, b.ObjectKind), strings.Compare(a.Path, b.Path),
			compareOwners(a.One, b.One), compareOwners(a.Two, b.Two))
	})
	return found
}

func (p Pairs) print(out io.Writer) error {
	var rows [][]string
	for _, pair := range p.Pairs {
		verdict := "share"
		if pair.Shared == 0 {
			verdict = "could fight"
		}
		rows = append(rows, []string{
			verdict, pair.ObjectKind, pair.Path, words(pair.One), words(pair.Two),
			strconv.Itoa(pair.Shared), strconv.Itoa(pair.OnlyOne), strconv.Itoa(pair.OnlyTwo),
		})
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintf(out, "no two managers meet in %s\n", show.Count(p.Objects, "object"))
		return err
	}
	if err := show.Table(out, []string{"", "KIND", "PATH", "ONE", "TWO", "SHARED", "ONLY ONE", "ONLY TWO"}, rows); err != nil {
		return err
	}
	if p.LeftOut > 0 {
		fmt.Fprintf(out, "note: paths were left out %d times, there are too many: choose fewer types\n", p.LeftOut)
	}
	return nil
}

func words(o show.Owner) string {
	manager, how := o.Words()
	return manager + " (" + how + ")"
}

// general writes a path with [*] for the items of lists.
func general(path fieldpath.Path) string {
	var b strings.Builder
	for i := range path {
		if path[i].FieldName == nil {
			b.WriteString("[*]")
		} else {
			b.WriteString(fieldowners.FormatPath(path[i : i+1]))
		}
	}
	return b.String()
}
