package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hduolab/quell/test/bench/figures"
	"gonum.org/v1/gonum/stat"
)

// The goals with many Apps: live heap in KiB per App with its children, and how far growth may be from linear.
const (
	goalHeap     = 8.0
	goalExponent = 1.1
)

// scale is the part on many Apps.
type scale struct {
	figures.Scale
	// Grown are the runs without foreign Deployments that have Apps, by their number.
	Grown []figures.ScaleRun
	// idle is the run without anything, if there is one.
	idle *figures.ScaleRun
	// Growths are of what grows with the number of Apps.
	Growths []growth
	Goals   []goal
}

// growth is a quantity, and the exponent of its growth with the number of Apps.
type growth struct {
	What     string
	of       func(figures.ScaleRun) float64
	Exponent float64
}

var quantities = []growth{
	{What: "time until all are Ready", of: func(r figures.ScaleRun) float64 { return r.Create.Seconds }},
	{What: "the operator's processor time until then", of: func(r figures.ScaleRun) float64 { return r.Create.CPU }},
	{What: "its requests until then", of: func(r figures.ScaleRun) float64 { return float64(sum(r.Create)) }},
	{What: "time of a restart until quiet", of: func(r figures.ScaleRun) float64 { return r.Restart.Seconds }},
	{What: "live heap after it", of: func(r figures.ScaleRun) float64 { return mebibytes(r.Restart.Heap) }},
}

func newScale(f figures.Scale) *scale {
	s := &scale{Scale: f}
	for _, r := range f.Runs {
		switch {
		case r.Foreign == 0 && r.Apps > 0:
			s.Grown = append(s.Grown, r)
		case r.Foreign == 0 && r.Apps == 0:
			s.idle = &r
		}
	}
	slices.SortFunc(s.Grown, func(a, b figures.ScaleRun) int { return cmp.Compare(a.Apps, b.Apps) })
	if s.IsGrowth() {
		for _, q := range quantities {
			if fitted, ok := q.fit(s.Grown); ok {
				s.Growths = append(s.Growths, fitted)
			}
		}
	}
	s.judge()
	return s
}

// fit finds the exponent by least squares of the logarithms. It needs values above zero.
func (g growth) fit(runs []figures.ScaleRun) (growth, bool) {
	var xs, ys []float64
	for _, r := range runs {
		v := g.of(r)
		if v <= 0 {
			return g, false
		}
		xs, ys = append(xs, math.Log(float64(r.Apps))), append(ys, math.Log(v))
	}
	_, g.Exponent = stat.LinearRegression(xs, ys, nil, false)
	return g, true
}

// IsGrowth tells that there are different numbers of Apps.
func (s *scale) IsGrowth() bool {
	return len(s.Grown) > 1 && s.Grown[0].Apps < s.Grown[len(s.Grown)-1].Apps
}

// HasMemory tells that memory was followed over a time that is worth a plot.
func (s *scale) HasMemory() bool {
	return slices.ContainsFunc(s.Grown, func(r figures.ScaleRun) bool {
		return len(r.Memory) > 1 && r.Memory[len(r.Memory)-1].After >= time.Minute
	})
}

func sum(l figures.Load) int {
	all := 0
	for _, n := range l.Verbs {
		all += n
	}
	return all
}

// PerApp is the live heap of an App in KiB, without what a process without Apps has, where that is known.
func (s *scale) PerApp(r figures.ScaleRun) float64 {
	heap := r.Restart.Heap
	if s.idle != nil {
		heap -= s.idle.Restart.Heap
	}
	return float64(heap) / 1024 / float64(r.Apps)
}

// command makes figures as these were made.
func (s *scale) command() string {
	var sizes []string
	var rest time.Duration
	for _, r := range s.Grown {
		sizes = append(sizes, strconv.Itoa(r.Apps))
		rest = time.Duration(r.Rest.Seconds * float64(time.Second)).Round(10 * time.Second) // it ends a little late
	}
	foreign := 0
	for _, r := range s.Runs {
		foreign = max(foreign, r.Foreign)
	}
	return fmt.Sprintf(partOfScale, strings.Join(sizes, ","), foreign, rest)
}

// HasIdle tells that a process without Apps was measured.
func (s *scale) HasIdle() bool { return s.idle != nil }

func (s *scale) judge() {
	if len(s.Grown) == 0 {
		return
	}
	largest := s.Grown[len(s.Grown)-1]
	perApp := s.PerApp(largest)
	s.Goals = append(s.Goals,
		goal{fmt.Sprintf("live heap per App, at %s", whole(float64(largest.Apps))), fmt.Sprintf("below %s KiB", number(goalHeap)), number(perApp) + " KiB", perApp < goalHeap})
	restarts, rests := 0, 0
	for _, r := range s.Grown {
		restarts, rests = restarts+r.Restart.Writes, rests+r.Rest.Writes
	}
	s.Goals = append(s.Goals,
		goal{"writes of a restart with all of them", "0", whole(float64(restarts)), restarts == 0},
		goal{"writes at rest", "0", whole(float64(rests)), rests == 0})
	for _, g := range s.Growths {
		s.Goals = append(s.Goals, goal{"growth of " + g.What, fmt.Sprintf("exponent at most %s", number(goalExponent)),
			fmt.Sprintf("%.2f", g.Exponent), g.Exponent <= goalExponent})
	}
}

// Table is in Markdown: a row for each number of Apps.
func (s *scale) Table() string {
	var text strings.Builder
	text.WriteString("| Apps | until Ready, s | Apps/s | requests/s | writes per App | operator, cores | API server and etcd, cores | restart, s | its writes | heap per App, KiB | resident, MiB |\n" +
		"|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, r := range s.Grown {
		c := r.Create
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", whole(float64(r.Apps)), number(c.Seconds), number(float64(r.Apps)/c.Seconds),
			number(float64(sum(c))/c.Seconds), number(float64(c.Writes)/float64(r.Apps)), number(c.CPU/c.Seconds), number(c.APIServer/c.Seconds),
			number(r.Restart.Seconds), whole(float64(r.Restart.Writes)), number(s.PerApp(r)), number(mebibytes(r.Restart.Resident)))
	}
	return text.String()
}

// RestTable is in Markdown: what the operator does when nothing is left to do.
func (s *scale) RestTable() string {
	var text strings.Builder
	text.WriteString("| Apps | watched for, s | requests | writes | operator, cores | heap at first, MiB | heap at last, MiB |\n|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, r := range s.Grown {
		first, last := none, none
		if n := len(r.Memory); n > 0 {
			first, last = number(mebibytes(r.Memory[0].Heap)), number(mebibytes(r.Memory[n-1].Heap))
		}
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %s | %s | %s |\n", whole(float64(r.Apps)), number(r.Rest.Seconds), whole(float64(sum(r.Rest))),
			whole(float64(r.Rest.Writes)), fmt.Sprintf("%.4f", r.Rest.CPU/r.Rest.Seconds), first, last)
	}
	return text.String()
}

// HasForeign tells that there are runs with foreign Deployments.
func (s *scale) HasForeign() bool { return len(s.foreign()) > 0 }

func (s *scale) foreign() []figures.ScaleRun {
	return slices.DeleteFunc(slices.Clone(s.Runs), func(r figures.ScaleRun) bool { return r.Foreign == 0 })
}

// ForeignTable is in Markdown: each run with foreign Deployments below the same without, where there is one.
func (s *scale) ForeignTable() string {
	var text strings.Builder
	text.WriteString("| Apps | foreign Deployments | start, s | requests of the start | processor time of the start, s | heap, MiB | requests at rest | cores at rest |\n" +
		"|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	row := func(r figures.ScaleRun) {
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %s | %s | %s | %.4f |\n", whole(float64(r.Apps)), whole(float64(r.Foreign)), number(r.Restart.Seconds),
			whole(float64(sum(r.Restart))), number(r.Restart.CPU), number(mebibytes(r.Restart.Heap)), whole(float64(sum(r.Rest))), r.Rest.CPU/r.Rest.Seconds)
	}
	for _, r := range s.foreign() {
		i := slices.IndexFunc(s.Runs, func(w figures.ScaleRun) bool { return w.Foreign == 0 && w.Apps == r.Apps })
		if i >= 0 {
			row(s.Runs[i])
		}
		row(r)
	}
	return text.String()
}
