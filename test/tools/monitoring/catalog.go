package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// metric is what is known of one.
type metric struct {
	// kind is counter, gauge, histogram, summary, or untyped when it is not known; recorded when a recording rule makes it.
	kind   string
	labels set
}

// catalog has metrics by name.
type catalog map[string]metric

// add takes over the metrics of a file in Prometheus's text format.
func (c catalog) add(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(file)
	if err != nil {
		return fmt.Errorf("read the metrics in %s: %w", path, err)
	}
	for name, family := range families {
		m := metric{kind: strings.ToLower(family.GetType().String()), labels: set{}}
		for _, series := range family.GetMetric() {
			for _, label := range series.GetLabel() {
				m.labels[label.GetName()] = true
			}
		}
		c[name] = m
	}
	return nil
}

// lookup finds metrics, and the parts of histograms and summaries.
func (c catalog) lookup(name string) (metric, bool) {
	if m, isKnown := c[name]; isKnown {
		return m, m.kind != "histogram"
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		base, found := strings.CutSuffix(name, suffix)
		m, isKnown := c[base]
		switch {
		case !found || !isKnown:
		case suffix == "_bucket" && m.kind == "histogram":
			return metric{"counter", m.labels.with("le")}, true
		case suffix != "_bucket" && (m.kind == "histogram" || m.kind == "summary"):
			return metric{"counter", m.labels}, true
		}
	}
	return metric{}, false
}
