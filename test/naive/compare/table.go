package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
)

// result is what was counted for one operator.
type result struct {
	name    string
	objects int
	// first counts the writes before the measurement: the objects' start and the warm-up.
	first int
	// During the measurement: requests of any kind, those that ask for a change, and new versions of the objects.
	requests, writes, stored int
	measured                 time.Duration
}

func (r result) rate(n int) float64 { return float64(n) / r.measured.Seconds() }

// table shows the results in groups of equal numbers of objects.
func table(results []result, o options) string {
	var text strings.Builder
	fmt.Fprintf(&text, `Counted at the API server for %s, while nobody touched the objects:

`, o.measure)
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "OPERATOR\tOBJECTS\tBEFORE\tREQUESTS/S\tWRITES\tWRITES/S\tPER OBJECT\tSTORED/S\tRATIO")
	for _, r := range results {
		fmt.Fprintf(w, "%s\t%d\t%d\t%.1f\t%d\t%.1f\t%.2f\t%.1f\t%s\n", r.name, r.objects, r.first, r.rate(r.requests),
			r.writes, r.rate(r.writes), r.rate(r.writes)/float64(r.objects), r.rate(r.stored), ratio(r, results))
	}
	w.Flush()
	fmt.Fprintf(&text, `
BEFORE      writes from the creation of the objects to %s after the last one had its status
WRITES      requests to change something; STORED are the new versions of the objects that came of them
PER OBJECT  writes per second and object
RATIO       writes, over those of the same code on ssa.StatusWriter with as many objects
`, o.warmUp)
	return text.String()
}

// ratio is a dash where the divisor is zero.
func ratio(r result, results []result) string {
	for _, base := range results {
		if base.name == statusWriter && base.objects == r.objects && base.writes > 0 {
			return fmt.Sprintf("%.1f", float64(r.writes)/float64(base.writes))
		}
	}
	return "-"
}
