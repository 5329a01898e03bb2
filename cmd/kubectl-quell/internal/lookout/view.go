package lookout

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/storms"
)

// view is what a terminal shows of a session.
type view struct {
	from, to time.Time
	// rate of all writes per second.
	rate     float64
	coverage coverage
	storms   []Storm
	others   []storms.Storm
	isWide   bool
}

func (s *session) view(isWide bool) view {
	r := s.report()
	return view{s.from, s.to, s.latest.Rate, cover(s.watches), r.Storms, r.Others, isWide}
}

// tint is what makes one row differ from others.
type tint int

const (
	plain tint = iota
	warning
	dim
)

type row struct {
	cells []string
	tint  tint
}

// render gives the lines that a terminal of a size has room for, with one left for the cursor. Storms come first.
func (v view) render(s size, palette show.Palette) []string {
	lines := []string{cut(v.heading(), s.width)}
	room := max(1, s.height-1)
	rows := v.rows()
	if len(rows) == 0 {
		lines = append(lines, cut("no storm until now", s.width))
		return lines[:min(len(lines), room)]
	}
	shown := max(0, min(len(rows), room-2))
	more := len(rows) - shown
	if more > 0 { // which takes a line
		shown = max(0, shown-1)
		more = len(rows) - shown
	}
	lines = append(lines, layout(append([]row{{cells: storms.Headings(v.isWide, rate)}}, rows[:shown]...), s.width, palette)...)
	if more > 0 {
		lines = append(lines, palette.Dim(cut(fmt.Sprintf("and %d more", more), s.width)))
	}
	return lines[:min(len(lines), room)]
}

func (v view) heading() string {
	return fmt.Sprintf("since %s (%s): %s; %s writes/s over all", v.from.Format(time.TimeOnly), lasted(v.from, v.to), v.coverage.words(),
		storms.Number(storms.Rounded(v.rate)))
}

func (v view) rows() []row {
	var rows []row
	for _, s := range v.storms {
		colour := warning
		if s.Ended != nil {
			colour = dim
		}
		rows = append(rows, row{v.cells(s.Storm, stormRate), colour})
	}
	for _, s := range v.others {
		rows = append(rows, row{v.cells(s, rate), dim})
	}
	return rows
}

func (v view) cells(s storms.Storm, first storms.Column) []string {
	cells := storms.Cells(s, v.isWide, first)
	for i := range cells {
		cells[i] = show.Escape(cells[i])
	}
	return cells
}

// gap between columns.
const gap = "  "

// layout puts rows in columns as wide as they need, or less where the terminal is narrow: then the widest give way.
func layout(rows []row, width int, palette show.Palette) []string {
	widths := make([]int, len(rows[0].cells))
	for _, r := range rows {
		for i, cell := range r.cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	narrow(widths, width-len(gap)*(len(widths)-1))
	var lines []string
	for _, r := range rows {
		var cells []string
		for i, cell := range r.cells {
			cells = append(cells, show.Pad(cut(cell, widths[i]), widths[i]))
		}
		lines = append(lines, r.coloured(cells, width, palette))
	}
	return lines
}

// narrow takes from the widest columns until the sum fits, and leaves each at least a few characters.
func narrow(widths []int, room int) {
	const least = 4
	sum := 0
	for _, w := range widths {
		sum += w
	}
	for ; sum > room; sum-- {
		widest := 0
		for i, w := range widths {
			if w > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= least {
			return
		}
		widths[widest]--
	}
}

// coloured joins cells; a warning colours the last one, which is the verdict.
func (r row) coloured(cells []string, width int, palette show.Palette) string {
	line := cut(strings.TrimRight(strings.Join(cells, gap), " "), width)
	switch r.tint {
	case dim:
		return palette.Dim(line)
	case warning:
		verdict := strings.TrimRight(cells[len(cells)-1], " ")
		if before, found := strings.CutSuffix(line, verdict); found {
			return before + palette.Warn(verdict)
		}
	}
	return line
}

// cut shortens a text to a width by its middle, since names tell most at both ends.
func cut(text string, width int) string {
	runes := []rune(text)
	switch {
	case len(runes) <= width:
		return text
	case width < 2:
		return string(runes[:max(0, width)])
	}
	head := width / 2
	return string(runes[:head]) + "…" + string(runes[len(runes)-(width-head-1):])
}
