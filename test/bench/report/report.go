// Package report makes docs/benchmarks.md and its plots from the figures that the benchmarks left beside it. All ratios, exponents
// and verdicts on goals are computed here, and none is kept.
package report

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"text/template"

	"github.com/hduolab/quell/test/bench/figures"
	"github.com/hduolab/quell/test/bench/rivals"
)

// How the figures are made, from the root of the repository.
const (
	requestsCommand = "make bench BENCH=requests"
	noOpCommand     = "make bench BENCH=noop"
	scaleCommand    = "make bench BENCH=scale"
	partOfScale     = "make bench BENCH='scale --sizes=%s --foreign=%d --rest=%s'"
)

//go:embed benchmarks.md.tmpl
var source string

var layout = template.Must(template.New("benchmarks.md").Funcs(template.FuncMap{
	"cell": cell, "next": func(i int) int { return i + 1 }, "count": func(n int) string { return whole(float64(n)) },
	"machine": machine, "goals": goalsTable,
}).Parse(source))

// plotted is a file beside the page.
type plotted struct {
	name    string
	content []byte
}

// Render reads benchmarks/requests.json, noop.json and scale.json in a folder, and writes benchmarks.md there and the plots beside
// the figures. What has no figures yet is left out of the page with a word on how to make them. Nothing is written when a file
// cannot be read; the error names it.
func Render(dir string) error {
	return render(dir, append([]rivals.Rival{rivals.Quell()}, rivals.All()...))
}

func render(dir string, contestants []rivals.Rival) error {
	p, err := read(filepath.Join(dir, "benchmarks"), contestants)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := layout.Execute(&text, p); err != nil {
		return fmt.Errorf("make the page of benchmarks: %w", err)
	}
	plots, err := p.plots()
	if err != nil {
		return err
	}
	for _, f := range append(plots, plotted{filepath.Join("..", "benchmarks.md"), text.Bytes()}) {
		const mode = 0o644 // as an editor would save it
		if err := os.WriteFile(filepath.Join(dir, "benchmarks", f.name), f.content, mode); err != nil {
			return fmt.Errorf("write the page of benchmarks: %w", err)
		}
	}
	return nil
}

// page is what the template shows. Nil is a part that has no figures.
type page struct {
	Contestants []rivals.Rival
	Requests    *requests
	NoOp        *noOp
	Scale       *scale
	// How to make the figures of each part.
	RequestsCommand, NoOpCommand, ScaleCommand string
}

func read(dir string, contestants []rivals.Rival) (*page, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("find the figures: %w", err)
	}
	p := &page{Contestants: contestants, RequestsCommand: requestsCommand, NoOpCommand: noOpCommand, ScaleCommand: scaleCommand}
	var r *figures.Requests
	var n *figures.NoOp
	var s *figures.Scale
	for name, into := range map[string]any{"requests.json": &r, "noop.json": &n, "scale.json": &s} {
		if err := decode(filepath.Join(dir, name), into); err != nil {
			return nil, err
		}
	}
	if r != nil {
		p.Requests = newRequests(*r, contestants)
	}
	if n != nil {
		p.NoOp = newNoOp(*n, contestants)
	}
	if s != nil {
		p.Scale = newScale(*s)
		p.ScaleCommand = p.Scale.command()
	}
	return p, nil
}

// decode reads a file of figures. Where there is none it leaves what into points to.
func decode(path string, into any) error {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the figures: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("read the figures of %s: %w", path, err)
	}
	return nil
}

// plots draws all that there are figures for.
func (p *page) plots() ([]plotted, error) {
	var drawn []plotted
	for _, d := range []struct {
		name string
		is   bool
		draw func() ([]byte, error)
	}{
		{"requests.svg", p.Requests != nil, p.Requests.plot},
		{"noop.svg", p.NoOp != nil, p.NoOp.plot},
		{"growth.svg", p.Scale != nil && p.Scale.IsGrowth(), p.Scale.plotGrowth},
		{"memory.svg", p.Scale != nil && p.Scale.HasMemory(), p.Scale.plotMemory},
	} {
		if !d.is {
			continue
		}
		content, err := d.draw()
		if err != nil {
			return nil, fmt.Errorf("draw %s: %w", d.name, err)
		}
		drawn = append(drawn, plotted{d.name, content})
	}
	return drawn, nil
}
