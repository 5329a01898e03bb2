package page

import (
	"slices"
	"time"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/show"
	"github.com/hduolab/quell/cmd/kubectl-quell/internal/storms"
	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/hduolab/quell/controller/storm/chart"
	"github.com/hduolab/quell/controller/storm/timeline"
)

// maxPoints is how many points of a line can be told apart on a page.
const maxPoints = 150

// Chart draws what happened per second by key.
func Chart[K comparable](title string, rates timeline.Rates[K], name func(K) string) chart.Chart {
	together := (len(rates.Rest) + maxPoints - 1) / maxPoints
	c := chart.Chart{Title: title, Unit: "writes/s", From: rates.From, Step: time.Duration(max(1, together)) * rates.Step}
	for _, line := range rates.Lines[:min(chart.Colours, len(rates.Lines))] {
		c.Lines = append(c.Lines, chart.Line{Name: show.Escape(name(line.Key)), Values: means(line.PerSecond, together)})
	}
	if rates.Others {
		c.Lines = append(c.Lines, chart.Line{Name: "all others", Values: means(rates.Rest, together), IsRest: true})
	}
	return c
}

// means are those of a number of values together.
func means(values []float64, together int) []float64 {
	if together <= 1 {
		return values
	}
	var found []float64
	for part := range slices.Chunk(values, together) {
		sum := 0.0
		for _, v := range part {
			sum += v
		}
		found = append(found, sum/float64(len(part)))
	}
	return found
}

// ManagerName names a field manager in a chart.
func ManagerName(o fieldowners.Owner) string {
	return storms.Writer{Owner: show.Owner{Manager: o.Manager, Operation: string(o.Operation), Subresource: o.Subresource}}.Name()
}
