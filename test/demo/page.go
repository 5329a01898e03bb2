package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hduolab/quell/controller/storm/chart"
	"github.com/hduolab/quell/test/localcluster"
)

//go:embed page.html
var source string

var layout = template.Must(template.New("page").Funcs(template.FuncMap{
	"number": number, "style": func() template.CSS { return chart.Style }, "draw": chart.Chart.HTML,
	"cores": func(v float64) string { return fmt.Sprintf("%.2f", v) },
}).Parse(source))

// page is what the file shows.
type page struct {
	Lead     string
	Acts     []*act
	Charts   []chart.Chart
	Verdicts []verdict
	// NoUsage says why there are no processor times, if so.
	NoUsage string
	// Facts about how it was measured.
	Facts []string
}

func (p page) html() ([]byte, error) {
	var b bytes.Buffer
	if err := layout.Execute(&b, p); err != nil {
		return nil, fmt.Errorf("make the page: %w", err)
	}
	return b.Bytes(), nil
}

// conclude writes the page and prints the summary. It does nothing when there was no act.
func (s *story) conclude() error {
	s.screen.show()
	if len(s.acts) == 0 {
		return nil
	}
	if last := s.acts[len(s.acts)-1]; last.To.IsZero() {
		if err := s.measure(last); err != nil {
			return err
		}
		last.What = "It was interrupted here."
	}
	content, err := s.page().html()
	if err != nil {
		return err
	}
	s.screen.say("\n%s", s.summary())
	if err := replace(s.options.page, content); err != nil {
		return err
	}
	path, err := filepath.Abs(s.options.page)
	if err != nil {
		return fmt.Errorf("name the page: %w", err)
	}
	s.screen.say("the page with the plots is %s", path)
	return nil
}

func (s *story) page() page {
	all := s.meter.all()
	p := page{Lead: s.lead(), Acts: s.acts, Verdicts: verdicts(s.storms), NoUsage: s.noUsage, Facts: []string{
		fmt.Sprintf("Kubernetes %s, API server and etcd alone, on %d cores of %s/%s that the operator and this program share; %s, %d workers; %s.",
			localcluster.KubernetesVersion, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, s.widgets(), s.workers, all.from().UTC().Format(time.DateOnly)),
		"Writes are the operator's requests to change something that the API server answered, from its audit log. Not in them are those of " +
			"whoever creates and changes Widgets.",
		"Both plots are of this run; how many writes a storm makes depends on the machine. That it goes on for ever, and the counts " +
			"of the acts 3 to 5, do not.",
	}}
	add := func(title, name string, values []float64) {
		c := chart.Chart{Title: title, From: all.from(), Step: step, Lines: []chart.Line{{Name: name, Values: values}}}
		for _, a := range s.acts {
			c.Phases = append(c.Phases, chart.Phase{Name: a.label(all), From: a.From})
		}
		p.Charts = append(p.Charts, c)
	}
	add("Writes per second that the API server answered", "the operator's writes per second", all.series(writesOf))
	if s.noUsage == "" {
		add("Cores that API server and etcd took", "cores", all.series(cpuOf))
	}
	return p
}

// label is what there is room for in a plot of everything.
func (a *act) label(all samples) string {
	const enough = 0.14 // of the width
	if a.Seconds() < enough*all.to().Sub(all.from()).Seconds() {
		return strconv.Itoa(a.Number)
	}
	return fmt.Sprintf("%d %s", a.Number, a.Name)
}

// lead is the story in a sentence, as far as it was told.
func (s *story) lead() string {
	first, last := s.acts[0], s.acts[len(s.acts)-1]
	if last.Name != "changed" || last.What == "" {
		return fmt.Sprintf("An operator made %s writes per second on %s that nobody touched. The story was not told to its end.",
			number(first.Rate()), s.widgets())
	}
	return fmt.Sprintf("An operator made %s writes per second on %s that nobody touched. Mended, and on controller/ssa.StatusWriter, it makes %s, "+
		"and %d for a change of one of them.", number(first.Rate()), s.widgets(), number(s.acts[3].Rate()), last.Writes())
}

// summary is a table of the acts, and what became of it.
func (s *story) summary() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "ACT\tSECONDS\tWRITES\tWRITES/S\tAT ITS END\tCORES\t ")
	for _, a := range s.acts {
		cores := "-"
		if s.noUsage == "" {
			cores = fmt.Sprintf("%.2f", a.Cores())
		}
		fmt.Fprintf(w, "%d\t%.0f\t%d\t%s\t%s\t%s\t %s\n", a.Number, a.Seconds(), a.Writes(), number(a.Rate()), number(a.AtEnd()), cores, a.Name)
	}
	w.Flush()
	for _, v := range verdicts(s.storms) {
		fmt.Fprintf(&text, "\nnamed: %s\n       %s, written by %s: %s", v.Objects, v.Fields, v.Managers, v.Verdict)
	}
	fmt.Fprintf(&text, "\n%s", s.comparison())
	return text.String()
}

// comparison is of the storm and of the rest after it.
func (s *story) comparison() string {
	if len(s.acts) < 4 || s.acts[3].What == "" {
		return s.lead()
	}
	storm, rest := s.acts[0], s.acts[3]
	text := fmt.Sprintf("from %s writes/s to %s", number(storm.Rate()), number(rest.Rate()))
	if s.noUsage == "" && rest.Cores() > 0 {
		text += fmt.Sprintf("; API server and etcd from %.2f cores to %.2f, %.0f times less", storm.Cores(), rest.Cores(), storm.Cores()/rest.Cores())
	}
	if len(s.acts) > 4 && s.acts[4].What != "" {
		text += fmt.Sprintf("; a change of one spec cost %s", count(s.acts[4].Writes(), "write"))
	}
	return text
}

// writable makes the folder of the page, and tells before all work whether a file can be made there.
func writable(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("the page cannot be written: %s is no regular file", path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("the page cannot be written: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".demo-*")
	if err != nil {
		return fmt.Errorf("the page cannot be written: %w", err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// replace leaves an older file until the new one is whole.
func replace(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".demo-*")
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	const mode = 0o644 // as an editor would save it
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write the page: %w", err), os.Remove(f.Name()))
	}
	return nil
}
