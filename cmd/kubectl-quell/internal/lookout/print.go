package lookout

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/storms"
	"github.com/hduolab/quell/controller/storm/live"
)

// stormRate is the first column of storms, rate that of other objects.
var (
	stormRate = storms.Column{Heading: "RATE", Value: func(s storms.Storm) string {
		if s.Rate == 0 {
			return "ended"
		}
		return perSecond(s)
	}}
	rate = storms.Column{Heading: "RATE", Value: perSecond}
)

func perSecond(s storms.Storm) string { return storms.Number(s.Rate) + "/s" }

// print writes the report for a reader.
func (r Report) print(out io.Writer, palette show.Palette, isWide bool) error {
	fmt.Fprintln(out, r.heading())
	found := make([]storms.Storm, 0, len(r.Storms))
	for _, s := range r.Storms {
		found = append(found, s.Storm)
	}
	if err := storms.Print(out, palette, isWide, stormRate, found); err != nil {
		return err
	}
	if isWide && len(r.Others) > 0 {
		if err := r.printOthers(out, palette); err != nil {
			return err
		}
	}
	for i, line := range r.Unseen {
		if i == 0 {
			fmt.Fprintln(out, "\nnot seen:")
		}
		fmt.Fprintln(out, "  "+show.Escape(line))
	}
	return nil
}

func (r Report) printOthers(out io.Writer, palette show.Palette) error {
	var table bytes.Buffer
	if err := storms.Table(&table, true, rate, r.Others); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nno storm:")
	for line := range strings.Lines(table.String()) {
		fmt.Fprintln(out, palette.Dim(strings.TrimSuffix(line, "\n")))
	}
	return nil
}

func (r Report) heading() string {
	return fmt.Sprintf("%s from %s to %s, %s per second; %s; %s", show.Count(int(r.Writes), "write"), r.From.UTC().Format(time.RFC3339),
		r.To.UTC().Format(time.RFC3339), storms.Number(r.PerSecond), show.Count(len(r.Storms), "storm"), r.watched())
}

// watched says how many resources were watched to the end.
func (r Report) watched() string {
	watched := 0
	for _, w := range r.Resources {
		if w.State == live.Watching {
			watched++
		}
	}
	return fmt.Sprintf("%d of %s watched", watched, show.Count(len(r.Resources), "resource"))
}
