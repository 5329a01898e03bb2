package storms

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
)

// Column is the first one of a table of storms, by which it is sorted.
type Column struct {
	Heading string
	Value   func(Storm) string
}

// Peak is the column of records.
var Peak = Column{"PEAK/S", func(s Storm) string { return Number(s.Peak) }}

// Print writes a table of storms and, of each, the evidence and the remedy.
func Print(out io.Writer, palette show.Palette, isWide bool, first Column, found []Storm) error {
	if len(found) == 0 {
		_, err := fmt.Fprintln(out, "no write storm found")
		return err
	}
	if err := Table(out, isWide, first, found); err != nil {
		return err
	}
	for _, alike := range group(found) {
		s := alike[0]
		var objects []string
		for _, one := range alike {
			objects = append(objects, one.Object.Words())
		}
		fmt.Fprintf(out, "\n%s: %s\n", show.Escape(Short(objects)), palette.Warn(string(s.Verdict)))
		for _, line := range s.Evidence {
			fmt.Fprintln(out, "  "+show.Escape(line))
		}
		if s.Remedy != "" {
			fmt.Fprintln(out, "  remedy: "+s.Remedy)
		}
	}
	return nil
}

// group puts those together of which the same is to be said, as when one operator storms with many objects.
func group(found []Storm) [][]Storm {
	var groups [][]Storm
	for _, s := range found {
		i := slices.IndexFunc(groups, func(g []Storm) bool {
			return g[0].Verdict == s.Verdict && slices.Equal(g[0].Evidence, s.Evidence) && slices.Equal(g[0].Managers(), s.Managers())
		})
		if i < 0 {
			groups = append(groups, nil)
			i = len(groups) - 1
		}
		groups[i] = append(groups[i], s)
	}
	return groups
}

// Table writes storms in a line each.
func Table(out io.Writer, isWide bool, first Column, found []Storm) error {
	var rows [][]string
	for _, s := range found {
		rows = append(rows, Cells(s, isWide, first))
	}
	return show.Table(out, Headings(isWide, first), rows)
}

// Headings of the cells of a storm.
func Headings(isWide bool, first Column) []string {
	headings := []string{first.Heading, "OBJECT", "MANAGER", "FIELDS", "VERDICT"}
	if isWide {
		headings = slices.Insert(headings, 4, "WRITES", "SAMPLES", "CONFIDENCE")
	}
	return headings
}

// Cells of a storm in a table, with the verdict at the end. They are not escaped.
func Cells(s Storm, isWide bool, first Column) []string {
	cells := []string{first.Value(s), s.Object.Words(), Short(s.Managers()), Short(s.Paths()), string(s.Verdict)}
	if isWide {
		cells = slices.Insert(cells, 4, strconv.FormatInt(s.Writes, 10), strconv.Itoa(s.Samples), Number(s.Confidence))
	}
	return cells
}

// Short is what a cell has room for; the report has all.
func Short(names []string) string {
	const shown = 2
	if len(names) <= shown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s, and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
}
