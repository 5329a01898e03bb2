package chart

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

var start = time.Date(2026, 1, 1, 10, 0, 3, 0, time.UTC)

func TestScale(t *testing.T) {
	for most, want := range map[float64]string{
		0: "[0 1] 1", 0.04: "[0 0.01 0.02 0.03 0.04] 0.04", 0.9: "[0 0.2 0.4 0.6 0.8 1] 1", 1: "[0 0.2 0.4 0.6 0.8 1] 1", 7: "[0 2 4 6 8] 8",
		19.8: "[0 5 10 15 20] 20", 100: "[0 20 40 60 80 100] 100", 101: "[0 50 100 150] 150", 3e6: "[0 1e+06 2e+06 3e+06] 3e+06",
	} {
		ticks, end := scale(most, 5)
		if got := fmt.Sprint(ticks, end); got != want {
			t.Errorf("up to %v: %s, want %s", most, got, want)
		}
	}
}

func TestTimes(t *testing.T) {
	for length, want := range map[time.Duration]string{
		time.Second:          "10:00:03 10:00:04, time (UTC) on 2026-01-01",
		30 * time.Second:     "10:00:05 10:00:10 10:00:15 10:00:20 10:00:25 10:00:30, time (UTC) on 2026-01-01",
		10 * time.Minute:     "10:02 10:04 10:06 10:08 10:10, time (UTC) on 2026-01-01",
		20 * time.Hour:       "Jan 1 12:00 Jan 1 15:00 Jan 1 18:00 Jan 1 21:00 Jan 2 00:00 Jan 2 03:00 Jan 2 06:00, time (UTC)",
		6 * 24 * time.Hour:   "Jan 2 Jan 3 Jan 4 Jan 5 Jan 6 Jan 7, day (UTC)",
		900 * 24 * time.Hour: "",
	} {
		ticks, format, axis := times(start, length, 7)
		if len(ticks) > 8 || len(ticks) < 2 {
			t.Errorf("%s: %d ticks", length, len(ticks))
		}
		var labels []string
		for _, when := range ticks {
			labels = append(labels, when.Format(format))
		}
		if got := strings.Join(labels, " ") + ", " + axis; want != "" && got != want {
			t.Errorf("%s: %s", length, got)
		}
	}
}

func TestHTML(t *testing.T) {
	c := Chart{Title: "Writes <b>", Unit: "writes/s", From: start, Step: time.Second, Lines: []Line{
		{Name: "<script>alert(1)</script>", Values: []float64{1, 2, 4}}, {Name: `"&'`, Values: []float64{0, 0, 0}},
		{Name: "the rest", Values: []float64{1, 1, 1}, IsRest: true},
	}, Phases: []Phase{{Name: "1 <i>", From: start}, {Name: "2 late", From: start.Add(2950 * time.Millisecond)}}}
	got, err := c.HTML()
	if err != nil {
		t.Fatal(err)
	}
	wellFormed(t, string(got))
	for _, want := range []string{
		`points="171.3,175.0 402.0,124.0 632.7,22.0"`, `class="drawn c0"`, `class="drawn rest"`, ">writes/s<", `text-anchor="end">10:00:06<`, "mean 2.33, peak 4", "&lt;script&gt;",
		`class="phase" x1="56.0"`, `text-anchor="start" dx="4">1 &lt;i&gt;<`, `class="phase" x1="736.5"`, `text-anchor="end" dx="-4">2 late<`,
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if strings.Contains(string(got), "<script") || strings.Contains(string(got), "<b>") {
		t.Error("text is not escaped")
	}
}

func TestOneStepIsAPoint(t *testing.T) {
	got, err := Chart{From: start, Step: time.Second, Lines: []Line{{Name: "x", Values: []float64{1}}}}.HTML()
	if err != nil || !strings.Contains(string(got), "<circle") || strings.Contains(string(got), "<polyline") {
		t.Errorf("%v: %s", err, got)
	}
	if got, err := (Chart{From: start, Step: time.Second}).HTML(); err != nil || got != "" {
		t.Errorf("of nothing: %v, %s", err, got)
	}
}

func wellFormed(t *testing.T, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
	}
}
