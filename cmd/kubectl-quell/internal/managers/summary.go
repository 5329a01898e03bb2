package managers

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
)

// Summary is the answer for a selection.
type Summary struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Objects    int    `json:"objects"`
	// Managers are sorted by the number of their objects, the greatest first.
	Managers []Manager `json:"managers"`
	// Notes counts objects by reason of a note.
	Notes map[string]int `json:"notes,omitempty"`
}

// Manager is what one field manager does in a selection.
type Manager struct {
	// Owner is without an API version; its time is that of the last write.
	show.Owner `json:",inline"`
	Objects    int `json:"objects"`
	Fields     int `json:"fields"`
	// Kinds counts objects by kind.
	Kinds map[string]int `json:"kinds"`
}

// tally collects a summary; its memory grows with the number of managers, not of objects.
type tally struct {
	objects  int
	managers map[show.Owner]*Manager
	notes    map[string]int
}

func newTally() *tally {
	return &tally{managers: map[show.Owner]*Manager{}, notes: map[string]int{}}
}

func (t *tally) add(i Item) {
	t.objects++
	seen := map[show.Owner]bool{}
	for _, e := range i.Entries {
		key := show.Owner{Manager: e.Manager, Operation: e.Operation, Subresource: e.Subresource}
		m := t.managers[key]
		if m == nil {
			m = &Manager{Owner: key, Kinds: map[string]int{}}
			t.managers[key] = m
		}
		m.Fields += e.Fields
		if e.Time != nil && (m.Time == nil || m.Time.Before(e.Time)) {
			m.Time = e.Time
		}
		if !seen[key] {
			seen[key] = true
			m.Objects++
			m.Kinds[i.Object.Kind]++
		}
	}
	t.addNotes(i.Notes)
}

func (t *tally) addNotes(notes []Note) {
	seen := map[string]bool{}
	for _, n := range notes {
		if !seen[n.Reason] {
			seen[n.Reason] = true
			t.notes[n.Reason]++
		}
	}
}

func (t *tally) summary() Summary {
	s := Summary{APIVersion: show.APIVersion, Kind: "ManagerSummary", Objects: t.objects, Managers: []Manager{}, Notes: t.notes}
	for _, m := range t.managers {
		s.Managers = append(s.Managers, *m)
	}
	slices.SortFunc(s.Managers, func(a, b Manager) int {
		return cmp.Or(cmp.Compare(b.Objects, a.Objects), compareOwners(a.Owner, b.Owner))
	})
	return s
}

func compareOwners(a, b show.Owner) int {
	return cmp.Or(strings.Compare(a.Manager, b.Manager), strings.Compare(a.Operation, b.Operation), strings.Compare(a.Subresource, b.Subresource))
}

func (s Summary) print(out io.Writer, palette show.Palette, times show.Times, now time.Time) error {
	if s.Objects == 0 {
		return nil
	}
	var rows [][]string
	for _, m := range s.Managers {
		kinds := slices.Sorted(maps.Keys(m.Kinds))
		rows = append(rows, []string{
			m.Manager, m.Operation, m.Subresource, strconv.Itoa(m.Objects), strconv.Itoa(m.Fields), times.Known(m.Time, now), strings.Join(kinds, ","),
		})
	}
	if err := show.Table(out, []string{"MANAGER", "OPERATION", "SUBRESOURCE", "OBJECTS", "FIELDS", "LAST WRITE", "KINDS"}, rows); err != nil {
		return err
	}
	for _, reason := range slices.Sorted(maps.Keys(s.Notes)) {
		fmt.Fprintln(out, palette.Warn("note: "+show.Count(s.Notes[reason], "object")+" with "+reason))
	}
	if s.Notes[unserved] > 0 {
		fmt.Fprintln(out, "      mend "+unserved+" with: kubectl quell managers TYPE --fix")
	}
	if len(s.Notes) > 0 {
		fmt.Fprintln(out, "      name an object to read its notes: kubectl quell managers TYPE/NAME")
	}
	return nil
}
