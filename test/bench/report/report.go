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
	var r figures.Requests
	if found, err := decode(filepath.Join(dir, "requests.json"), &r); err != nil {
		return nil, err
	} else if found {
		p.Requests = newRequests(r, contestants)
	}
	var n figures.NoOp
	if found, err := decode(filepath.Join(dir, "noop.json"), &n); err != nil {
		return nil, err
	} else if found {
		p.NoOp = newNoOp(n, contestants)
	}
	var s figures.Scale
	if found, err := decode(filepath.Join(dir, "scale.json"), &s); err != nil {
		return nil, err
	} else if found {
		p.Scale = newScale(s)
		p.ScaleCommand = p.Scale.command()
	}
	return p, nil
}

// decode reads a file of figures, and tells whether there is one.
func decode(path string, into any) (bool, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the figures: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return false, fmt.Errorf("read the figures of %s: %w", path, err)
	}
	return true, nil
}

// plots draws all that there are figures for.
func (p *page) plots() ([]plotted, error) {
	var drawn []plotted
	add := func(name string, content []byte, err error) error {
		if err != nil {
			return fmt.Errorf("draw %s: %w", name, err)
		}
		drawn = append(drawn, plotted{name, content})
		return nil
	}
	if p.Requests != nil {
		content, err := p.Requests.plot()
		if err := add("requests.svg", content, err); err != nil {
			return nil, err
		}
	}
	if p.NoOp != nil {
		content, err := p.NoOp.plot()
		if err := add("noop.svg", content, err); err != nil {
			return nil, err
		}
	}
	if p.Scale != nil && p.Scale.IsGrowth() {
		content, err := p.Scale.plotGrowth()
		if err := add("growth.svg", content, err); err != nil {
			return nil, err
		}
	}
	if p.Scale != nil && p.Scale.HasMemory() {
		content, err := p.Scale.plotMemory()
		if err := add("memory.svg", content, err); err != nil {
			return nil, err
		}
	}
	return drawn, nil
}
