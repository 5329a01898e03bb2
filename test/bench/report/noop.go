package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hduolab/quell/test/bench/figures"
	"github.com/hduolab/quell/test/bench/rivals"
)

// The goals of the no-op path: the remembered pre-check in µs and allocations, the reconcile in µs, how many times cheaper it is
// than the cheapest that sees lost ownership too, and how many times as dear as a plain comparison it may be.
const (
	goalPreCheck, goalAllocs    = 5.0, 20.0
	goalReconcile, goalCheaper  = 50.0, 3.0
	goalDearer                  = 1.5
	wholeReconcile, remembered  = "Reconcile/", "PreCheck/remembered"
	plainComparison             = "deep-equal"
	nanosecondsPerMicrosecond   = 1e3
	sees, doesNotSee, isUnknown = "yes", "no", "?"
)

// noOp is the part on what a reconcile costs in which nothing has to be written.
type noOp struct {
	figures.NoOp
	Reconciles []reconcile
	// Parts are those that no contestant is compared in.
	Parts []figures.Benchmark
	Goals []goal
}

// reconcile is the whole no-op reconcile of a contestant.
type reconcile struct {
	figures.Benchmark
	Contestant, Sees, Ratio string
}

// goal is what was aimed at, and what came of it.
type goal struct {
	What, Goal, Figure string
	IsMet              bool
}

// micros is the time in µs.
func micros(b figures.Benchmark) float64 { return b.Time / nanosecondsPerMicrosecond }

func newNoOp(f figures.NoOp, contestants []rivals.Rival) *noOp {
	n := &noOp{NoOp: f}
	own, hasOwn := n.find(wholeReconcile + quell)
	for _, b := range f.Results {
		name, isReconcile := strings.CutPrefix(b.Name, wholeReconcile)
		if !isReconcile {
			n.Parts = append(n.Parts, b)
			continue
		}
		r := reconcile{b, name, isUnknown, none}
		if i := slices.IndexFunc(contestants, func(c rivals.Rival) bool { return c.Name == name }); i >= 0 {
			r.Sees = map[bool]string{true: sees, false: doesNotSee}[contestants[i].SeesLostOwnership]
		}
		if hasOwn {
			r.Ratio = times(b.Time, own.Time)
		}
		n.Reconciles = append(n.Reconciles, r)
	}
	slices.SortStableFunc(n.Reconciles, func(a, b reconcile) int { return int(a.Time - b.Time) })
	n.judge(own, hasOwn)
	return n
}

func (n *noOp) find(name string) (figures.Benchmark, bool) {
	i := slices.IndexFunc(n.Results, func(b figures.Benchmark) bool { return b.Name == name })
	if i < 0 {
		return figures.Benchmark{}, false
	}
	return n.Results[i], true
}

// judge compares with the goals as far as there are figures.
func (n *noOp) judge(own figures.Benchmark, hasOwn bool) {
	if b, found := n.find(remembered); found {
		n.Goals = append(n.Goals, goal{"pre-check with what it remembers", fmt.Sprintf("at most %s µs and %s allocations", number(goalPreCheck), number(goalAllocs)),
			fmt.Sprintf("%s µs, %s allocations", number(micros(b)), number(b.Allocs)), micros(b) <= goalPreCheck && b.Allocs <= goalAllocs})
	}
	if !hasOwn {
		return
	}
	n.Goals = append(n.Goals, goal{"whole no-op reconcile", fmt.Sprintf("at most %s µs", number(goalReconcile)), number(micros(own)) + " µs", micros(own) <= goalReconcile})
	others := slices.DeleteFunc(slices.Clone(n.Reconciles), func(r reconcile) bool { return r.Contestant == quell || r.Sees != sees })
	if len(others) > 0 {
		cheapest := others[0] // they are sorted
		n.Goals = append(n.Goals, goal{"against the cheapest other that sees lost ownership, " + cheapest.Contestant,
			fmt.Sprintf("at least %s times cheaper", number(goalCheaper)), number(cheapest.Time/own.Time) + " times cheaper", cheapest.Time >= goalCheaper*own.Time})
	}
	if plain, found := n.find(wholeReconcile + plainComparison); found {
		n.Goals = append(n.Goals, goal{"against " + plainComparison + ", which does not see it", fmt.Sprintf("at most %s times as dear", number(goalDearer)),
			number(own.Time/plain.Time) + " times as dear", own.Time <= goalDearer*plain.Time})
	}
}

// Table is in Markdown: the contestants, the cheapest first.
func (n *noOp) Table() string {
	var text strings.Builder
	text.WriteString("| | sees lost ownership | µs | allocations | KiB | to Quell | spread |\n|---|---|---:|---:|---:|---:|---:|\n")
	for _, r := range n.Reconciles {
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %s | %s | %s |\n", cell(r.Contestant), r.Sees, number(micros(r.Benchmark)), whole(r.Allocs), number(r.Bytes/1024), r.Ratio,
			number(r.Spread))
	}
	return text.String()
}

// PartsTable is in Markdown.
func (n *noOp) PartsTable() string {
	var text strings.Builder
	text.WriteString("| part | µs | allocations | KiB | spread |\n|---|---:|---:|---:|---:|\n")
	for _, b := range n.Parts {
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %s |\n", cell(b.Name), number(micros(b)), whole(b.Allocs), number(b.Bytes/1024), number(b.Spread))
	}
	return text.String()
}

// goalsTable is in Markdown.
func goalsTable(goals []goal) string {
	var text strings.Builder
	text.WriteString("| | goal | measured | |\n|---|---|---|---|\n")
	for _, g := range goals {
		met := "**missed**"
		if g.IsMet {
			met = "met"
		}
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", cell(g.What), cell(g.Goal), cell(g.Figure), met)
	}
	return text.String()
}
