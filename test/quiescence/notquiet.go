package quiescence

import (
	"fmt"
	"strings"

	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/hduolab/quell/controller/storm"
)

// NotQuiet is the error of Check when something was written.
type NotQuiet struct {
	// Reason says when.
	Reason string
	// Writes are the first 20 of Count.
	Writes []Write
	Count  int
	// Findings are verdicts on the objects that were written often enough for one.
	Findings []storm.Finding
}

// Error tells who wrote what, a line for each write and field, and then the verdicts.
func (e *NotQuiet) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "not quiet: %s: %d writes", e.Reason, e.Count)
	if e.Count > len(e.Writes) {
		fmt.Fprintf(&b, ", the first %d of them", len(e.Writes))
	}
	b.WriteString(":\n")
	for _, w := range e.Writes {
		fmt.Fprintf(&b, "  %s\n", w)
		for _, f := range w.Fields {
			fmt.Fprintf(&b, "      %s: %s -> %s\n", f.Path, f.Before, f.After)
		}
		if w.More > 0 {
			fmt.Fprintf(&b, "      and %d more fields\n", w.More)
		}
	}
	for _, f := range e.Findings {
		fmt.Fprintf(&b, "verdict on %s: %s\n", f.Object, f.Verdict)
		for _, line := range f.Evidence {
			fmt.Fprintf(&b, "      %s\n", line)
		}
		if f.Remedy != "" {
			fmt.Fprintf(&b, "      remedy: %s\n", f.Remedy)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// String is such as 12:30:05.250 widgets.example.com/team-a/w1 changed by "widget-operator" (Update, status).
func (w Write) String() string {
	line := fmt.Sprintf("%s %s %s", w.Time.Format("15:04:05.000"), w.Object, w.Action)
	switch {
	case w.Action == Deleted:
		return line
	case w.Writer == fieldowners.Owner{}:
		return line + " by a writer that managedFields do not tell"
	}
	line += " by " + w.Writer.String()
	if w.IsLikely {
		line += ", as its fields say"
	}
	if w.Action == Changed && len(w.Fields) == 0 {
		line += "; nothing but resourceVersion and managedFields changed"
	}
	return line
}
