package show

import (
	"io"
	"strings"
	"unicode/utf8"
)

// gap separates the columns of a table.
const gap = "   "

// Table writes rows in columns, under a heading, as kubectl get does. Cells are escaped; the last column is not padded.
func Table(out io.Writer, heading []string, rows [][]string) error {
	widths := make([]int, len(heading))
	lines := make([][]string, 0, len(rows)+1)
	for _, row := range append([][]string{heading}, rows...) {
		line := make([]string, len(row))
		for i, cell := range row {
			line[i] = Escape(cell)
			widths[i] = max(widths[i], utf8.RuneCountInString(line[i]))
		}
		lines = append(lines, line)
	}
	var b strings.Builder
	for _, line := range lines {
		for i, cell := range line {
			if i == len(line)-1 {
				b.WriteString(cell + "\n")
				continue
			}
			b.WriteString(Pad(cell, widths[i]) + gap)
		}
	}
	_, err := io.WriteString(out, trimLines(b.String()))
	return err
}

// Pad appends spaces up to a width in characters.
func Pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}

func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
