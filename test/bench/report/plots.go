package report

import (
	"bytes"
	"fmt"
	"image/color"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Colours that the colour-blind tell apart, on the white ground that a page in the dark needs too.
var (
	blue   = color.RGBA{0x00, 0x72, 0xb2, 0xff}
	orange = color.RGBA{0xd5, 0x5e, 0x00, 0xff}
	green  = color.RGBA{0x00, 0x8f, 0x6b, 0xff}
	pink   = color.RGBA{0xb8, 0x50, 0x8f, 0xff}
	ochre  = color.RGBA{0x9a, 0x7d, 0x00, 0xff}
	grey   = color.RGBA{0xdd, 0xe2, 0xe8, 0xff}
	lines  = []color.RGBA{blue, orange, green, pink, ochre}
)

const (
	width     = 7.5 * vg.Inch
	barHeight = 0.3 * vg.Inch
	margins   = 1.1 * vg.Inch
	tall      = 4 * vg.Inch
	padding   = vg.Length(6) // points
)

// bar is one of a chart of bars.
type bar struct {
	name, label string
	value       float64
	colour      color.RGBA
}

// plot shows the writes of a life. Endless ones go beyond the edge.
func (r *requests) plot() ([]byte, error) {
	most := 1.0
	for _, l := range r.Lives {
		if !l.IsEndless() {
			most = max(most, float64(l.Writes))
		}
	}
	const beyond = 1.25 // of the longest that ends
	var drawn []bar
	for _, l := range r.Lives {
		b := bar{l.Name, split(l.Writes, l.Changes), float64(l.Writes), blue}
		switch {
		case l.IsEndless():
			b.label, b.value, b.colour = "without end, "+number(l.Rate)+"/s", most*beyond, orange
		case l.Name == quell:
			b.colour = green
		}
		if l.Missed > 0 {
			b.label += fmt.Sprintf(", missed in %d", l.Missed)
		}
		drawn = append(drawn, b)
	}
	return bars("Writes of one App from its creation to its deletion", "writes", drawn)
}

// plot shows the time of a no-op reconcile.
func (n *noOp) plot() ([]byte, error) {
	var drawn []bar
	for _, r := range n.Reconciles {
		b := bar{r.Contestant, number(micros(r.Benchmark)) + " µs", micros(r.Benchmark), blue}
		switch {
		case r.Contestant == quell:
			b.colour = green
		case r.Sees == doesNotSee:
			b.colour = ochre
			b.label += ", does not see lost ownership"
		}
		drawn = append(drawn, b)
	}
	return bars("A reconcile in which nothing has to be written", "µs", drawn)
}

// slack in spaces to the right of what is aligned there: a browser's font may be wider than the one that was measured.
const slack = 2

// ticks writes those of another ticker as the tables do.
type ticks struct {
	plot.Ticker
	after string
}

func (t ticks) Ticks(from, to float64) []plot.Tick {
	found := t.Ticker.Ticks(from, to)
	for i := range found {
		if found[i].Label != "" {
			found[i].Label = strings.TrimSuffix(number(found[i].Value), ".0") + t.after
		}
	}
	return found
}

// bars draws them from top to bottom.
func bars(title, unit string, drawn []bar) ([]byte, error) {
	p := newPlot(title)
	p.X.Label.Text, p.X.Min = unit, 0
	names := make([]string, len(drawn))
	most := 0.0
	for i, b := range drawn {
		at := float64(len(drawn) - 1 - i)
		names[len(drawn)-1-i] = b.name + strings.Repeat(" ", slack+len(b.name)/4)
		chart, err := plotter.NewBarChart(plotter.Values{b.value}, barHeight*2/3)
		if err != nil {
			return nil, err
		}
		chart.Horizontal, chart.XMin, chart.Color = true, at, b.colour
		chart.LineStyle.Width = 0
		label, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{{X: b.value, Y: at}}, Labels: []string{" " + b.label}})
		if err != nil {
			return nil, err
		}
		label.TextStyle[0].YAlign = -0.35 // the middle of the letters
		p.Add(chart, label)
		most = max(most, b.value)
	}
	p.NominalY(names...)
	p.X.Max = most * 1.45 // room for the labels
	return svg(p, barHeight*vg.Length(len(drawn))+margins)
}

// plotGrowth shows what each App costs, relative to what it costs among the fewest: what grows in proportion stays at 1.
func (s *scale) plotGrowth() ([]byte, error) {
	p := newPlot("What one App costs among so many; the exponent of growth")
	first := s.Grown[0]
	p.X.Label.Text, p.Y.Label.Text = "Apps", "relative to one of "+whole(float64(first.Apps))
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, ticks{plot.LogTicks{Prec: -1}, ""}
	p.Legend.Top, p.Legend.Left = true, true
	for i, g := range s.Growths {
		var points plotter.XYs
		for _, r := range s.Grown {
			apps := float64(r.Apps)
			points = append(points, plotter.XY{X: apps, Y: g.of(r) / g.of(first) * float64(first.Apps) / apps})
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, err
		}
		colour := lines[i%len(lines)]
		dots.Color, dots.Shape, dots.Radius, line.Color = colour, draw.CircleGlyph{}, vg.Points(3), colour
		p.Add(line, dots)
		p.Legend.Add(fmt.Sprintf("%s: %.2f", g.What, g.Exponent), line, dots)
	}
	p.Y.Min, p.Y.Max = 0, p.Y.Max*2 // room for the legend
	return svg(p, tall)
}

// plotMemory shows the live heap at rest.
func (s *scale) plotMemory() ([]byte, error) {
	p := newPlot("Live heap of the operator at rest")
	p.X.Label.Text, p.Y.Label.Text, p.Y.Min = "minutes", "MiB", 0
	p.Legend.Top, p.Legend.Left = true, true
	for i, r := range s.Grown {
		var points plotter.XYs
		for _, m := range r.Memory {
			points = append(points, plotter.XY{X: m.After.Minutes(), Y: mebibytes(m.Heap)})
		}
		if len(points) < 2 {
			continue
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, err
		}
		line.Color, line.Width = lines[i%len(lines)], vg.Points(1.5)
		p.Add(line)
		p.Legend.Add(whole(float64(r.Apps))+" Apps", line)
	}
	p.Y.Min, p.Y.Max = 0, p.Y.Max*1.3
	return svg(p, tall)
}

func newPlot(title string) *plot.Plot {
	plot.DefaultFont.Variant = "Sans" // as wide as what browsers have
	p := plot.New()
	p.Title.Text = title
	p.Title.Padding = padding
	p.X.Padding, p.Y.Padding = 0, 0
	p.Legend.YOffs, p.Legend.XOffs, p.Legend.Padding = -padding, padding, padding/2
	p.X.Tick.Marker, p.Y.Tick.Marker = ticks{plot.DefaultTicks{}, ""}, ticks{plot.DefaultTicks{}, strings.Repeat(" ", slack)}
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = grey, grey
	p.Add(grid)
	return p
}

func svg(p *plot.Plot, height vg.Length) ([]byte, error) {
	canvas := vgsvg.New(width, height)
	p.Draw(draw.Crop(draw.New(canvas), padding, -4*padding, padding, -padding))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
