package report

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hduolab/quell/test/bench/figures"
	"github.com/hduolab/quell/test/bench/rivals"
)

var update = flag.Bool("update", false, "write the golden page anew")

const golden = "testdata/benchmarks.golden.md"

// contestants of the figures in testdata, which has one more that nobody knows.
var contestants = []rivals.Rival{
	{Name: "quell", How: "applies what differs", Source: "https://example.com/quell", SeesLostOwnership: true},
	{Name: "deep-equal", How: "compares", Source: "https://example.com/deep-equal"},
	{Name: "flux-runtime", How: "patches", Source: "https://example.com/flux", SeesLostOwnership: true},
	{Name: "apply-always", How: "applies", Source: "https://example.com/apply", SeesLostOwnership: true},
	{Name: "update-subsecond", How: "stamps", Source: "https://example.com/stamp", SeesLostOwnership: true},
}

// docs is a folder with those figures of testdata that are named.
func docs(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "benchmarks"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join("testdata/docs/benchmarks", name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "benchmarks", name), string(content))
	}
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, elements ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestGolden(t *testing.T) {
	dir := docs(t, "requests.json", "noop.json", "scale.json")
	if err := render(dir, contestants); err != nil {
		t.Fatal(err)
	}
	got := content(t, dir, "benchmarks.md")
	if *update {
		write(t, golden, got)
	}
	if want := content(t, golden); got != want {
		t.Errorf("the page is another one; look at it, and run go test ./report -update\n%s", got)
	}
	for name, want := range map[string][]string{
		"requests.svg": {"without end, 150/s", "9 (8), missed in 1"}, "noop.svg": {"41.2 µs", "does not see lost ownership"},
		"growth.svg": {"time until all are Ready: 0.9"}, "memory.svg": {"10,000 Apps"},
	} {
		drawing := content(t, dir, "benchmarks", name)
		wellFormed(t, name, drawing)
		for _, w := range want {
			if !strings.Contains(drawing, w) {
				t.Errorf("%s has no %q", name, w)
			}
		}
	}
}

func wellFormed(t *testing.T, name, text string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}

// All that is known of a contestant comes from the real ones.
func TestWithoutFiguresThePageSaysHowToMakeThem(t *testing.T) {
	dir := docs(t)
	if err := Render(dir); err != nil {
		t.Fatal(err)
	}
	got := content(t, dir, "benchmarks.md")
	if n := strings.Count(got, "Not measured yet."); n != 3 {
		t.Errorf("told %d times, want 3", n)
	}
	for _, want := range []string{requestsCommand, noOpCommand, scaleCommand, "| quell |", "| deep-equal |"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	drawn, err := filepath.Glob(filepath.Join(dir, "benchmarks", "*.svg"))
	if err != nil || len(drawn) > 0 || strings.Contains(got, ".svg") {
		t.Errorf("%v; plots of nothing: %v", err, drawn)
	}
}

func TestAnUnreadableFileIsNamed(t *testing.T) {
	for _, text := range []string{"{", `{"nope": 1}`, "[]"} {
		dir := docs(t, "noop.json")
		write(t, filepath.Join(dir, "benchmarks", "scale.json"), text)
		if err := render(dir, contestants); err == nil || !strings.Contains(err.Error(), "scale.json") {
			t.Errorf("of %s: %v", text, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "benchmarks.md")); err == nil {
			t.Error("a page was written all the same")
		}
	}
	if err := render(t.TempDir(), contestants); err == nil {
		t.Error("no folder of figures, and no error")
	}
}

func TestFit(t *testing.T) {
	of := func(power func(float64) float64) []figures.ScaleRun {
		var runs []figures.ScaleRun
		for _, apps := range []int{100, 1000, 5000} {
			runs = append(runs, figures.ScaleRun{Apps: apps, Create: figures.Load{Seconds: power(float64(apps))}})
		}
		return runs
	}
	for want, power := range map[float64]func(float64) float64{
		1: func(n float64) float64 { return 3 * n }, 2: func(n float64) float64 { return n * n / 7 }, 0: func(float64) float64 { return 4 },
	} {
		got, ok := quantities[0].fit(of(power))
		if !ok || got.Exponent < want-1e-9 || got.Exponent > want+1e-9 {
			t.Errorf("%v %v, want %v", got.Exponent, ok, want)
		}
	}
	if _, ok := quantities[0].fit(of(func(float64) float64 { return 0 })); ok {
		t.Error("zero has no logarithm")
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.01234: "0.0123", 1.5: "1.50", 41.2345: "41.2", 99.96: "100.0", 123.4: "123", 1234567: "1,234,567", -1234: "-1,234", 2: "2"} {
		if got := number(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
	if got := times(4, 0); got != none {
		t.Error(got)
	}
}
