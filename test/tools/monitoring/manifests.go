package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// query is a PromQL expression and where it stands.
type query struct {
	where, expr string
	// record is the name of the metric that a recording rule makes of it.
	record string
	// uses are the labels that texts beside the query name.
	uses []string
}

var (
	ruleLabel   = regexp.MustCompile(`\$labels\.(\w+)`)
	legendLabel = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)
	labelValues = regexp.MustCompile(`^label_values\((.+),\s*(\w+)\)$`)
)

// decode takes the queries out of manifests. Objects of the Prometheus Operator must have no field that it does not know.
func decode(manifests []byte) ([]query, error) {
	var queries []query
	documents := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(manifests)))
	for {
		buffer := make([]byte, len(manifests)+1)
		n, err := documents.Read(buffer)
		if errors.Is(err, io.EOF) {
			return queries, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the manifests: %w", err)
		}
		found, err := decodeOne(buffer[:n])
		if err != nil {
			return nil, err
		}
		queries = append(queries, found...)
	}
}

func decodeOne(document []byte) ([]query, error) {
	var head struct {
		Kind string
		Data map[string]string
	}
	if err := sigsyaml.Unmarshal(document, &head); err != nil {
		return nil, fmt.Errorf("read a manifest: %w", err)
	}
	switch head.Kind {
	case "PrometheusRule":
		rules := &monitoringv1.PrometheusRule{}
		if err := sigsyaml.UnmarshalStrict(document, rules); err != nil {
			return nil, fmt.Errorf("PrometheusRule: %w", err)
		}
		return ruleQueries(rules), nil
	case "ServiceMonitor":
		if err := sigsyaml.UnmarshalStrict(document, &monitoringv1.ServiceMonitor{}); err != nil {
			return nil, fmt.Errorf("ServiceMonitor: %w", err)
		}
	case "ConfigMap":
		var queries []query
		for _, name := range slices.Sorted(maps.Keys(head.Data)) {
			found, err := dashboardQueries(name, head.Data[name])
			if err != nil {
				return nil, fmt.Errorf("dashboard %s: %w", name, err)
			}
			queries = append(queries, found...)
		}
		return queries, nil
	}
	return nil, nil
}

func ruleQueries(rules *monitoringv1.PrometheusRule) []query {
	var queries []query
	for _, group := range rules.Spec.Groups {
		for _, rule := range group.Rules {
			q := query{where: "rule " + rule.Alert + rule.Record, expr: rule.Expr.String(), record: rule.Record}
			for _, text := range rule.Annotations {
				for _, label := range matches(ruleLabel, text) {
					if _, set := rule.Labels[label]; !set {
						q.uses = append(q.uses, label)
					}
				}
			}
			queries = append(queries, q)
		}
	}
	return queries
}

// dashboard is what a check needs of Grafana's format.
type dashboard struct {
	Panels      []panel
	Annotations struct {
		List []struct{ Name, Expr, TitleFormat, TextFormat string }
	}
	Templating struct {
		List []struct {
			Name, Type string
			Query      json.RawMessage
		}
	}
}

type panel struct {
	ID          int
	Type, Title string
	Targets     []struct{ Expr, LegendFormat string }
}

func dashboardQueries(name, content string) ([]query, error) {
	var d dashboard
	if err := json.Unmarshal([]byte(content), &d); err != nil {
		return nil, err
	}
	queries, err := variableQueries(name, &d)
	if err != nil {
		return nil, err
	}
	for _, a := range d.Annotations.List {
		queries = append(queries, query{
			where: name + ": annotation " + a.Name, expr: a.Expr, uses: matches(legendLabel, a.TitleFormat+a.TextFormat),
		})
	}
	ids := map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] {
			return nil, fmt.Errorf("panel %q has the id %d of another one", p.Title, p.ID)
		}
		ids[p.ID] = true
		if p.Type != "row" && len(p.Targets) == 0 {
			return nil, fmt.Errorf("panel %q has no query", p.Title)
		}
		for _, t := range p.Targets {
			queries = append(queries, query{where: fmt.Sprintf("%s: panel %q", name, p.Title), expr: t.Expr, uses: matches(legendLabel, t.LegendFormat)})
		}
	}
	return queries, nil
}

// variableQueries are those of variables, which are label_values(METRIC, LABEL).
func variableQueries(name string, d *dashboard) ([]query, error) {
	var queries []query
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		var q struct{ Query string }
		if err := json.Unmarshal(v.Query, &q); err != nil {
			return nil, fmt.Errorf("variable %s: %w", v.Name, err)
		}
		parts := labelValues.FindStringSubmatch(q.Query)
		if parts == nil {
			return nil, fmt.Errorf("variable %s: %q is not label_values(METRIC, LABEL)", v.Name, q.Query)
		}
		queries = append(queries, query{where: name + ": variable " + v.Name, expr: parts[1], uses: parts[2:]})
	}
	return queries, nil
}

// matches are the first groups of all matches.
func matches(pattern *regexp.Regexp, text string) []string {
	var found []string
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}
