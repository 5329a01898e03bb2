package chart

import (
	"bytes"
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"
)

// Chart are lines of one unit over the same time.
type Chart struct {
	// Title says what is drawn, for those who do not see it too.
	Title string
	// Unit of the values, written beside their axis.
	Unit string
	// From is where the first step begins, and Step how long each is.
	From time.Time
	Step time.Duration
	// Lines, at most Colours, and besides one that is the rest of many.
	Lines []Line
	// Phases into which the time falls, in their order.
	Phases []Phase
}

// Phase begins at a time and lasts until the next one. Its name has room for a word or two.
type Phase struct {
	Name string
	From time.Time
}

// Line has a value for each step.
type Line struct {
	Name   string
	Values []float64
	// IsRest has the line drawn as one that is no single thing.
	IsRest bool
}

// Colours is how many lines can be told apart.
const Colours = 8

// The drawing, in units of SVG that a browser scales.
const (
	width, height          = 760.0, 270.0
	left, right            = 56.0, 12.0
	top, bottom            = 22.0, 44.0
	innerWidth             = width - left - right
	innerHeight            = height - top - bottom
	yTicks, xTicks         = 5, 7
	labelGap, pointSize    = 6.0, 3.0
	baseline               = height - bottom
	titleHeight, axisTitle = 12.0, height - 4
)

// Style is what a page needs to know about the colours; they suit light and dark grounds and are told apart by the colour-blind,
// the later ones by dashes too.
const Style = template.CSS(`
.chart{margin:0 0 1.5rem}
.chart svg{width:100%;height:auto;display:block}
.chart text{fill:var(--faint);font-size:12px;font-variant-numeric:tabular-nums}
.chart .grid{stroke:var(--line);stroke-width:1}
.chart .axis{stroke:var(--faint);stroke-width:1}
.chart .phase{stroke:var(--faint);stroke-width:1;stroke-dasharray:4 3}
.chart .drawn{fill:none;stroke-width:1.8;stroke-linejoin:round;vector-effect:non-scaling-stroke}
.chart .point{stroke:none}
.chart figcaption{font-weight:600;margin-bottom:.4rem}
.chart ul{list-style:none;margin:.5rem 0 0;padding:0;display:grid;grid-template-columns:repeat(auto-fill,minmax(20rem,1fr));gap:.2rem 1.5rem}
.chart li{display:flex;gap:.5rem;align-items:baseline;min-width:0}
.chart li svg{width:1.6rem;height:.6rem;flex:none}
.chart li span{overflow-wrap:anywhere;flex:1}
.chart li small{color:var(--faint);white-space:nowrap}
.c0{stroke:var(--c0);fill:var(--c0)}.c1{stroke:var(--c1);fill:var(--c1)}.c2{stroke:var(--c2);fill:var(--c2)}
.c3{stroke:var(--c3);fill:var(--c3)}.c4{stroke:var(--c4);fill:var(--c4);stroke-dasharray:6 2}
.c5{stroke:var(--c5);fill:var(--c5);stroke-dasharray:6 2}.c6{stroke:var(--c6);fill:var(--c6);stroke-dasharray:2 2}
.c7{stroke:var(--c7);fill:var(--c7);stroke-dasharray:2 2}.rest{stroke:var(--faint);fill:var(--faint);stroke-dasharray:1 3}
:root{--c0:#0072b2;--c1:#d55e00;--c2:#008f6b;--c3:#b8508f;--c4:#9a7d00;--c5:#2b8cbe;--c6:#7a4fbf;--c7:#a33b3b}
@media(prefers-color-scheme:dark){:root{--c0:#56b4e9;--c1:#ff8f45;--c2:#2fc99b;--c3:#e48fc4;--c4:#e6cf4a;--c5:#8fc7f0;--c6:#b79af5;--c7:#f08a8a}}
@media(max-width:640px){.chart text{font-size:16px}.chart ul{grid-template-columns:minmax(0,1fr)}}
`)

var drawing = template.Must(template.New("chart").Parse(`<figure class="chart">
<figcaption>{{.Title}}</figcaption>
<svg viewBox="0 0 {{.Width}} {{.Height}}" role="img" aria-label="{{.Title}}">
<text x="{{.Left}}" y="{{.TitleY}}">{{.Unit}}</text>
{{- range .Rows}}
<line class="grid" x1="{{$.Left}}" x2="{{$.End}}" y1="{{.At}}" y2="{{.At}}"/><text x="{{$.LabelX}}" y="{{.At}}" dy="4" text-anchor="end">{{.Label}}</text>
{{- end}}
<line class="axis" x1="{{.Left}}" x2="{{.End}}" y1="{{.Base}}" y2="{{.Base}}"/>
{{- range .Columns}}
<line class="axis" x1="{{.At}}" x2="{{.At}}" y1="{{$.Base}}" y2="{{$.TickY}}"/><text x="{{.At}}" y="{{$.LabelY}}" text-anchor="{{.Anchor}}">{{.Label}}</text>
{{- end}}
<text x="{{.End}}" y="{{.AxisY}}" text-anchor="end">{{.Axis}}</text>
{{- range .Phases}}
<line class="phase" x1="{{.At}}" x2="{{.At}}" y1="{{$.TitleY}}" y2="{{$.Base}}"/><text x="{{.At}}" y="{{$.TitleY}}" text-anchor="{{.Anchor}}" dx="{{if eq .Anchor "end"}}-4{{else}}4{{end}}">{{.Label}}</text>
{{- end}}
{{- range .Lines}}
{{- if .Points}}
<polyline class="drawn {{.Class}}" points="{{.Points}}"/>
{{- else}}
<circle class="point {{.Class}}" cx="{{.X}}" cy="{{.Y}}" r="{{$.PointSize}}"/>
{{- end}}
{{- end}}
</svg>
<ul>
{{- range .Lines}}
<li><svg viewBox="0 0 26 8" aria-hidden="true"><line class="drawn {{.Class}}" x1="0" x2="26" y1="4" y2="4"/></svg><span>{{.Name}}</span><small>mean {{.Mean}}, peak {{.Peak}}</small></li>
{{- end}}
</ul>
</figure>
`))

// drawn is what the template shows.
type drawn struct {
	Title, Unit, Axis string
	// Places in the drawing.
	Width, Height, Left, End, Base, LabelX, LabelY float64
	TitleY, TickY, AxisY, PointSize                float64
	Rows, Columns, Phases                          []mark
	Lines                                          []drawnLine
}

type mark struct {
	At, Label, Anchor string
}

type drawnLine struct {
	Name, Class, Points, X, Y, Mean, Peak string
}

// HTML draws the chart. All text in it is escaped. A chart without a line or without a step is nothing.
func (c Chart) HTML() (template.HTML, error) {
	steps := c.steps()
	if steps == 0 {
		return "", nil
	}
	values, most := scale(c.most(), yTicks)
	d := drawn{
		Title: c.Title, Unit: c.Unit, Width: width, Height: height, Left: left, End: width - right, TitleY: titleHeight, Base: baseline,
		TickY: baseline + labelGap/2, LabelX: left - labelGap, LabelY: baseline + labelGap + titleHeight, AxisY: axisTitle, PointSize: pointSize,
	}
	for _, v := range values {
		d.Rows = append(d.Rows, mark{At: coordinate(y(v, most)), Label: strconv.FormatFloat(v, 'f', -1, 64)})
	}
	whole := time.Duration(steps) * c.Step
	ticks, format, axis := times(c.From, whole, xTicks)
	d.Axis = axis
	x := func(when time.Time) float64 { return left + innerWidth*when.Sub(c.From).Seconds()/whole.Seconds() }
	for _, when := range ticks {
		d.Columns = append(d.Columns, mark{coordinate(x(when)), when.UTC().Format(format), anchor(x(when))})
	}
	for _, phase := range c.Phases {
		d.Phases = append(d.Phases, mark{coordinate(x(phase.From)), phase.Name, beside(x(phase.From))})
	}
	for i, line := range c.Lines {
		d.Lines = append(d.Lines, line.draw(i, steps, most))
	}
	var page bytes.Buffer
	if err := drawing.Execute(&page, d); err != nil {
		return "", fmt.Errorf("draw %s: %w", c.Title, err)
	}
	return template.HTML(page.String()), nil
}

// anchor keeps a label at the end of the axis inside the drawing.
func anchor(x float64) string {
	const half = 28 // of a label's width
	if x > width-half {
		return "end"
	}
	return "middle"
}

// beside keeps the name of a phase inside the drawing.
func beside(x float64) string {
	const room = 40 // for a short name
	if x > width-room {
		return "end"
	}
	return "start"
}

func (c Chart) steps() int {
	steps := 0
	for _, line := range c.Lines {
		steps = max(steps, len(line.Values))
	}
	return steps
}

func (c Chart) most() float64 {
	most := 0.0
	for _, line := range c.Lines {
		for _, v := range line.Values {
			most = max(most, v)
		}
	}
	return most
}

func (l Line) draw(i, steps int, most float64) drawnLine {
	d := drawnLine{Name: l.Name, Class: "c" + strconv.Itoa(i%Colours), Mean: "0", Peak: "0"}
	if l.IsRest {
		d.Class = "rest"
	}
	var points []string
	peak, sum := 0.0, 0.0
	for n, v := range l.Values {
		d.X, d.Y = coordinate(left+innerWidth*(float64(n)+0.5)/float64(steps)), coordinate(y(v, most))
		points = append(points, d.X+","+d.Y)
		peak, sum = max(peak, v), sum+v
	}
	if len(points) > 1 {
		d.Points = strings.Join(points, " ")
	}
	if len(points) > 0 {
		d.Mean, d.Peak = short(sum/float64(len(points))), short(peak)
	}
	return d
}

func y(v, most float64) float64 { return baseline - innerHeight*v/most }

// coordinate has a tenth of a unit, which is finer than a screen.
func coordinate(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

// short leaves three digits.
func short(v float64) string {
	if v >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
