package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hduolab/quell/test/bench/figures"
	"github.com/hduolab/quell/test/bench/rivals"
)

// requests is the part on what each contestant asked of the API server.
type requests struct {
	figures.Requests
	Lives []life
	// Notes are what was missed, numbered from 1 as in the cells.
	Notes []string
	Floor int
}

// life is a contestant in all phases.
type life struct {
	Name  string
	Cells []string
	// Writes and Changes are the sums of all phases, All those of requests of any kind, Refused of those that failed.
	Writes, Changes, All, Refused int
	// Rate is the highest of its endless phases in writes per second.
	Rate float64
	// Missed counts phases in which something was missed.
	Missed int
	// Ratio of the writes to Quell's, if all phases were measured.
	Ratio string
}

func newRequests(f figures.Requests, contestants []rivals.Rival) *requests {
	r := &requests{Requests: f}
	for _, p := range f.Phases {
		r.Floor += p.Floor
	}
	for _, name := range order(f.Rows, contestants) {
		r.Lives = append(r.Lives, r.life(name))
	}
	base := slices.IndexFunc(r.Lives, func(l life) bool { return l.Name == quell })
	for i := range r.Lives {
		r.Lives[i].Ratio = none
		if l := r.Lives[i]; l.IsEndless() {
			r.Lives[i].Ratio = "endless"
		} else if base >= 0 && !slices.Contains(l.Cells, none) {
			r.Lives[i].Ratio = times(float64(l.Writes), float64(r.Lives[base].Writes))
		}
	}
	return r
}

// order has those who are known first, in their order.
func order(rows []figures.RequestRow, contestants []rivals.Rival) []string {
	var names []string
	isThere := func(name string) bool {
		return slices.ContainsFunc(rows, func(row figures.RequestRow) bool { return row.Contestant == name })
	}
	for _, c := range contestants {
		if isThere(c.Name) {
			names = append(names, c.Name)
		}
	}
	for _, row := range rows {
		if !slices.Contains(names, row.Contestant) {
			names = append(names, row.Contestant)
		}
	}
	return names
}

func (r *requests) life(name string) life {
	l := life{Name: name}
	for _, p := range r.Phases {
		i := slices.IndexFunc(r.Rows, func(row figures.RequestRow) bool { return row.Contestant == name && row.Phase == p.Name })
		if i < 0 {
			l.Cells = append(l.Cells, none)
			continue
		}
		row := r.Rows[i]
		l.add(row)
		l.Cells = append(l.Cells, r.cell(row))
	}
	return l
}

func (l *life) add(row figures.RequestRow) {
	l.Writes += row.Writes
	l.Changes += row.Changes
	l.Refused += row.Refused
	for _, n := range row.Verbs {
		l.All += n
	}
	if row.Endless && row.Seconds > 0 {
		l.Rate = max(l.Rate, float64(row.Writes)/row.Seconds)
	}
	if row.Missed != "" {
		l.Missed++
	}
}

// IsEndless tells that a phase had to be ended for it.
func (l life) IsEndless() bool { return l.Rate > 0 }

// Total is the sum of writes, if there is one.
func (l life) Total() string {
	if l.IsEndless() {
		return "endless"
	}
	return split(l.Writes, l.Changes)
}

// cell is a number of writes, and of those that changed something where these are fewer.
func (r *requests) cell(row figures.RequestRow) string {
	text := split(row.Writes, row.Changes)
	if row.Endless && row.Seconds > 0 {
		text = fmt.Sprintf("**%s/s**", number(float64(row.Writes)/row.Seconds))
	}
	if row.Missed == "" {
		return text
	}
	note := cell(row.Missed)
	i := slices.Index(r.Notes, note)
	if i < 0 {
		i = len(r.Notes)
		r.Notes = append(r.Notes, note)
	}
	return fmt.Sprintf("%s <sup>%d</sup>", text, i+1)
}

func split(writes, changes int) string {
	if writes == changes {
		return whole(float64(writes))
	}
	return fmt.Sprintf("%s (%s)", whole(float64(writes)), whole(float64(changes)))
}

// Table is in Markdown: contestants by phases.
func (r *requests) Table() string {
	var text strings.Builder
	heading, rule := "| |", "|---|"
	floor := "| *floor* |"
	for _, p := range r.Phases {
		heading += " " + cell(p.Name) + " |"
		rule += "---:|"
		floor += fmt.Sprintf(" %d |", p.Floor)
	}
	fmt.Fprintf(&text, "%s all | to Quell | missed |\n%s---:|---:|---:|\n%s %d | | |\n", heading, rule, floor, r.Floor)
	for _, l := range r.Lives {
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %d |\n", cell(l.Name), strings.Join(l.Cells, " | "), l.Total(), l.Ratio, l.Missed)
	}
	return text.String()
}
