package fieldowners

import (
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Move is a path whose owners differ between two versions of an object.
type Move struct {
	// Path whose ownership moved.
	Path fieldpath.Path
	// Gained are the owners of the newer version that did not own the path in the older one.
	Gained []Owner
	// Lost are the owners of the older version that do not own the path any more.
	Lost []Owner
}

// Diff tells which paths changed owners from one version of an object to another, sorted by path. An owner whose entry cannot
// be decoded in one of the two is left out: what it owns there is not known.
func Diff(older, newer []Entry) []Move {
	moves := map[string]*Move{}
	collect(moves, newer, older, func(m *Move, o Owner) { m.Gained = append(m.Gained, o) })
	collect(moves, older, newer, func(m *Move, o Owner) { m.Lost = append(m.Lost, o) })
	sorted := make([]Move, 0, len(moves))
	for _, m := range moves {
		sorted = append(sorted, *m)
	}
	slices.SortFunc(sorted, func(a, b Move) int { return a.Path.Compare(b.Path) })
	return sorted
}

// collect calls add for each path that an owner has in entries and lacks in reference.
func collect(moves map[string]*Move, entries, reference []Entry, add func(*Move, Owner)) {
	for _, e := range entries {
		fields := e.Fields
		before, found := Find(reference, e.Owner)
		if found && before.Unknown != nil {
			continue
		}
		if found {
			fields = fields.Difference(before.Fields)
		}
		fields.Iterate(func(p fieldpath.Path) {
			key := p.String()
			if moves[key] == nil {
				moves[key] = &Move{Path: p.Copy()}
			}
			add(moves[key], e.Owner)
		})
	}
}

// Join lists owners in words, sorted and separated by commas; "an unknown writer" when there are none. Who has the same words as
// another one is named once.
func Join(owners []Owner) string {
	if len(owners) == 0 {
		return "an unknown writer"
	}
	words := make([]string, len(owners))
	for i, o := range owners {
		words[i] = o.String()
	}
	slices.Sort(words)
	return strings.Join(slices.Compact(words), ", ")
}
