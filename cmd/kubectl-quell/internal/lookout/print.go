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
	if len(r.Storms) == 0 {
		for _, line := range r.reservations() {
			fmt.Fprintln(out, "  "+show.Escape(line))
		}
	}
	r.printUnseen(out, isWide)
	return nil
}

// tellingTime is for how long a storm has to be watched for a verdict.
const tellingTime = 10 * time.Second

// reservations say what it does not mean that no storm was found.
func (r Report) reservations() []string {
	var told []string
	if length := r.To.Sub(r.From.Time); length < tellingTime && r.Writes > 0 {
		told = append(told, fmt.Sprintf("%s were seen, too short a time for a verdict: watch for %s or longer", show.Count(int(r.Writes), "write"), tellingTime))
	}
	if len(r.Namespaces) > 0 {
		told = append(told, "in the namespace "+strings.Join(r.Namespaces, ", ")+"; -A looks in all")
	}
	if r.CustomResourcesOnly {
		told = append(told, "in custom resources alone; name a TYPE, or --all, to look in Kubernetes' own")
	}
	if watched := r.watching(); watched < len(r.Resources) {
		told = append(told, fmt.Sprintf("in the %d of %s that could be watched", watched, show.Count(len(r.Resources), "resource")))
	}
	return told
}

// shownUnseen is how many lines of what was not seen there is room for; -o wide and the report have all.
const shownUnseen = 5

func (r Report) printUnseen(out io.Writer, isWide bool) {
	if len(r.Unseen) == 0 {
		return
	}
	shown := len(r.Unseen)
	if !isWide && shown > shownUnseen+1 {
		shown = shownUnseen
	}
	fmt.Fprintln(out, "\nnot seen:")
	for _, line := range r.Unseen[:shown] {
		fmt.Fprintln(out, "  "+show.Escape(line))
	}
	if more := len(r.Unseen) - shown; more > 0 {
		fmt.Fprintf(out, "  and %d more, see -o wide\n", more)
	}
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
	return fmt.Sprintf("%d of %s watched", r.watching(), show.Count(len(r.Resources), "resource"))
}

func (r Report) watching() int {
	watched := 0
	for _, w := range r.Resources {
		if w.State == live.Watching {
			watched++
		}
	}
	return watched
}
