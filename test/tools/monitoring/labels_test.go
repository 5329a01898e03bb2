package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var known = catalog{
	"writes_total":    {"counter", setOf("kind", "manager")},
	"watches":         {"gauge", setOf("state")},
	"undescribed":     {"untyped", setOf("kind")},
	"request_seconds": {"histogram", setOf("kind")},
}

func TestCatalog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics")
	const text = `# TYPE a counter
a{x="1"} 1
a{x="1",y="2"} 1
# TYPE b_seconds histogram
b_seconds_bucket{z="1",le="+Inf"} 3
b_seconds_sum{z="1"} 1
b_seconds_count{z="1"} 3
c{v=""} 0
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := catalog{"c": {"gauge", setOf("hidden")}}
	if err := c.add(path); err != nil {
		t.Fatal(err)
	}
	want := catalog{"a": {"counter", setOf("x", "y")}, "b_seconds": {"histogram", setOf("z")}, "c": {"untyped", setOf("v")}}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got %v, want %v", c, want)
	}
}

func TestLabels(t *testing.T) {
	for _, test := range []struct {
		expr string
		uses []string
		want string // a part of the only fault; empty for none
	}{
		{`writes_total{kind="App"}`, []string{"manager", "job"}, ""},
		{`write_total`, nil, `no metric "write_total"`},
		{`writes_total{knd="App"}`, nil, "no label knd"},
		{`writes_total{namespace="a"}`, nil, "no label namespace"},
		{`sum by (manager) (rate(writes_total[5m]))`, []string{"manager"}, ""},
		{`sum by (manger) (rate(writes_total[5m]))`, nil, "no label manger"},
		{`sum by (manager) (rate(writes_total[5m]))`, []string{"kind"}, "the result has no label kind"},
		{`sum without (manager) (writes_total)`, []string{"kind"}, ""},
		{`sum without (manager) (writes_total)`, []string{"manager"}, "the result has no label manager"},
		{`sum(writes_total)`, []string{"job"}, "the result has no label job"},
		{`topk(3, writes_total)`, []string{"manager"}, ""},
		{`increase(watches[5m])`, nil, "watches is a gauge"},
		{`rate(undescribed[5m])`, nil, ""},
		{`request_seconds`, nil, `no metric "request_seconds"`},
		{`histogram_quantile(0.9, sum by (kind, le) (rate(request_seconds_bucket[5m])))`, []string{"kind"}, ""},
		{`histogram_quantile(0.9, sum by (kind) (rate(request_seconds_bucket[5m])))`, nil, "no label le"},
		{`sum(request_seconds_sum) / sum(request_seconds_count)`, nil, ""},
		{`watches_bucket`, nil, `no metric "watches_bucket"`},
		{`writes_total_count`, nil, `no metric "writes_total_count"`},
		{`writes_total > on (job) watches`, []string{"kind"}, "the result has no label kind"},
		{`writes_total and on (kind) watches`, nil, "watches has no label kind"},
		{`writes_total / watches`, nil, "nothing matches"},
		{`writes_total / ignoring (kind, manager, state) watches`, nil, ""},
		{`writes_total or 0 * writes_total`, []string{"kind"}, ""},
		{`1 - watches`, []string{"state"}, ""},
		{`quantile_over_time(0.9, writes_total[1w:1h] offset 1h)`, []string{"kind"}, ""},
		{`absent(up{job="x"} == 1)`, []string{"kind"}, "the result has no label kind"},
		{`vector(1)`, nil, ""},
		{`sum(`, nil, "parse error"},
	} {
		t.Run(test.expr, func(t *testing.T) {
			expect(t, check([]query{{where: "test", expr: test.expr, uses: test.uses}}, known), test.want)
		})
	}
}

func TestRecordingRules(t *testing.T) {
	record := query{where: "record", expr: `sum by (kind) (writes_total)`, record: "kind:writes"}
	expect(t, check([]query{record, {where: "use", expr: `kind:writes{kind="App"}`}}, known), "")
	expect(t, check([]query{record, {where: "use", expr: `kind:writes{job="x"}`}}, known), "use: kind:writes has no label job")
	expect(t, check([]query{{where: "use", expr: `kind:writes`}, record}, known), "")
	other := query{where: "other", expr: `2 * kind:writes`, record: "kind:twice"}
	expect(t, check([]query{other, record}, known), `other: there is no metric "kind:writes"`)
}

func TestManifests(t *testing.T) {
	const rule = `
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata: {name: a}
spec:
  groups:
  - name: a
    rules:
    - {alert: A, expr: watches > 0, labels: {severity: x}, %s: {description: '{{ $labels.severity }} {{ $labels.%s }}'}}
`
	const board = `
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data:
  a.json: |
    {"panels": [{"id": 1, "type": "row"}, {"id": %d, "title": "P", "type": "stat", "targets": [{"expr": "%s", "legendFormat": "{{ state }}"}]}],
     "annotations": {"list": [{"name": "A", "expr": "ALERTS", "titleFormat": "{{alertname}}"}]},
     "templating": {"list": [{"type": "query", "name": "v", "query": {"query": "label_values(watches, %s)"}}]}}
`
	const monitor = `
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: a}
spec: {endpoints: [{%s: metrics}], selector: {}}
`
	for _, test := range []struct{ name, manifests, want string }{
		{"in order", fmt.Sprintf(rule, "annotations", "state") + fmt.Sprintf(board, 2, "watches", "state") + fmt.Sprintf(monitor, "port"), ""},
		{"an unknown field", fmt.Sprintf(rule, "annotation", "state"), `unknown field "annotation"`},
		{"an unknown label in a text", fmt.Sprintf(rule, "annotations", "kind"), "rule A: the result has no label kind"},
		{"an unknown field of an endpoint", fmt.Sprintf(monitor, "prt"), `unknown field "prt"`},
		{"two panels of one id", fmt.Sprintf(board, 1, "watches", "state"), `panel "P" has the id 1 of another one`},
		{"a panel's metric", fmt.Sprintf(board, 2, "watch", "state"), `a.json: panel "P": there is no metric "watch"`},
		{"a panel's legend", fmt.Sprintf(board, 2, "sum(watches)", "state"), `a.json: panel "P": the result has no label state`},
		{"a variable's label", fmt.Sprintf(board, 2, "watches", "stat"), "a.json: variable v: the result has no label stat"},
	} {
		t.Run(test.name, func(t *testing.T) {
			queries, err := decode([]byte(test.manifests))
			if err != nil {
				expect(t, []string{err.Error()}, test.want)
				return
			}
			expect(t, check(queries, known), test.want)
		})
	}
}

func expect(t *testing.T, faults []string, want string) {
	t.Helper()
	switch {
	case want == "" && len(faults) > 0:
		t.Errorf("want no fault, got %q", faults)
	case want != "" && (len(faults) != 1 || !strings.Contains(faults[0], want)):
		t.Errorf("want %q, got %q", want, faults)
	}
}
