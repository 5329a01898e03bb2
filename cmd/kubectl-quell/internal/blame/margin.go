package blame

import (
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/controller/fieldowners"
)

// nobody marks a line whose field has no owner.
const nobody = "(nobody)"

// style is how the margin is written.
type style struct {
	times   show.Times
	wide    bool
	palette show.Palette
	now     time.Time
}

// margin writes lines with their owners to the left.
type margin struct {
	style
	// cells are the columns of each entry's owner, padded and coloured.
	cells []string
	// blank and orphan take the place of an owner.
	blank, orphan string
	b             strings.Builder
}

func newMargin(entries []fieldowners.Entry, s style) *margin {
	m := &margin{style: s}
	rows := [][]string{{nobody}}
	for _, e := range entries {
		rows = append(rows, m.columns(e))
	}
	padded := align(rows)
	m.orphan = s.palette.Warn(padded[0])
	m.blank = strings.Repeat(" ", utf8.RuneCountInString(padded[0]))
	for i, e := range entries {
		m.cells = append(m.cells, s.palette.Of(e.Manager, padded[i+1]))
	}
	return m
}

func (m *margin) columns(e fieldowners.Entry) []string {
	owner := show.OwnerOf(e)
	manager, how := owner.Words()
	columns := []string{manager, how}
	if m.wide {
		columns = append(columns, show.Escape(owner.APIVersion))
	}
	if m.times != show.NoTimes {
		columns = append(columns, m.times.Format(owner.Time, m.now))
	}
	return columns
}

// align joins the columns of each row to texts of one width. A single column may use the room of all.
func align(rows [][]string) []string {
	var widths []int
	for _, row := range rows[1:] {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	texts := make([]string, len(rows))
	width := 0
	for i, row := range rows {
		for j, cell := range row {
			if len(row) > 1 {
				cell = show.Pad(cell, widths[j])
			}
			row[j] = cell
		}
		texts[i] = strings.Join(row, " ")
		width = max(width, utf8.RuneCountInString(texts[i]))
	}
	for i := range texts {
		texts[i] = show.Pad(texts[i], width)
	}
	return texts
}

// line writes one line, and one more for each further owner.
func (m *margin) line(cells []string, text string) {
	m.b.WriteString(cells[0] + " | " + text + "\n")
	for _, c := range cells[1:] {
		m.b.WriteString(c + " |\n")
	}
}

func (m *margin) owners(n *fieldowners.Node) []string {
	var cells []string
	for _, i := range n.Owners {
		cells = append(cells, m.cells[i])
	}
	if len(cells) > 0 {
		return cells
	}
	if isOrphan(n) {
		return []string{m.orphan}
	}
	return []string{m.blank}
}

func (s *subject) print(out io.Writer, f filter, st style, fromFile bool) error {
	lines, err := s.lines(f)
	if err != nil {
		return err
	}
	m := newMargin(s.entries, st)
	var last *fieldowners.Node
	for _, l := range lines {
		if l.node == last { // a further line of the same text
			m.line([]string{m.owners(last)[0]}, l.text)
			continue
		}
		m.line(m.owners(l.node), l.text)
		last = l.node
	}
	s.printAbsent(m, f)
	for _, note := range s.notes(f, fromFile) {
		m.b.WriteString(st.palette.Warn("note: "+show.Escape(note)) + "\n")
	}
	_, err = io.WriteString(out, m.b.String())
	return err
}

func (s *subject) printAbsent(m *margin, f filter) {
	absent := s.absent(f)
	if len(absent) == 0 {
		return
	}
	m.b.WriteString("owned, but absent:\n")
	for _, n := range absent {
		m.line(m.owners(n), fieldowners.FormatPath(n.Path))
	}
}
