package stormwatch

import (
	"fmt"
	"strings"
	"testing"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/storm"
	"github.com/hduolab/quell/controller/storm/live"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

func TestMetricsHaveBounds(t *testing.T) {
	w := &watches{byName: map[string]*running{"all": {}}}
	var report storm.Report
	for i := range 100 {
		resource := schema.GroupResource{Group: "example.com", Resource: fmt.Sprintf("r%02d", i)}
		report.Resources = append(report.Resources, storm.Rate[schema.GroupResource]{Key: resource, PerSecond: float64(i)})
		report.Findings = append(report.Findings, storm.Finding{Object: storm.Key{GroupResource: resource, Name: "a"}, Rate: float64(i), IsStorm: true})
	}
	report.Writes = 7
	w.byName["all"].show(report, observed{
		watches: []live.Watch{
			watchOf("a", live.Watching), watchOf("b", live.Watching), watchOf("c", live.Failing), watchOf("d", live.NotFound),
		},
		missing: []live.Missing{{}, {}, {IsServed: true}}, outside: []live.Resource{{}, {}},
	})
	w.byName["all"].setNamed(&quellv1alpha1.StormWatchStatus{Storms: []quellv1alpha1.Storm{
		{Group: "example.com", Resource: "r42", Name: "a", Verdict: "Fight", Managers: []string{"m", "n"}}, {Group: "example.com", Resource: "gone", Name: "a", Verdict: "Fight"},
	}})
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(w)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	samples, n := map[string]float64{}, map[string]int{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			samples[f.GetName()+" "+strings.Join(labels, ",")] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
			n[f.GetName()]++
		}
	}
	for name, want := range map[string]float64{
		"quell_storm_writes_per_second example.com,r99,all": 99,
		"quell_storm_writes_per_second example.com,r80,all": 80,
		"quell_storm_writes_per_second ,other,all":          79 * 80 / 2,
		// group, manager, name, namespace, resource, stormwatch, verdict
		"quell_storm_object_writes_per_second example.com,m,a,,r42,all,Fight": 42,
		"quell_storm_object_writes_per_second example.com,,a,,gone,all,Fight": 0,
		"quell_storm_watches Watching,all":                                    2,
		"quell_storm_watches Failing,all":                                     1,
		"quell_storm_watches Forbidden,all":                                   0,
		"quell_storm_watches NotFound,all":                                    3,
		"quell_storm_watches NotWatchable,all":                                1,
		"quell_storm_watches ClusterScoped,all":                               2,
		"quell_storm_changes_total all":                                       7,
	} {
		if got, found := samples[name]; !found || got != want {
			t.Errorf("%s is %v (%t), want %v", name, got, found, want)
		}
	}
	for name, want := range map[string]int{"quell_storm_writes_per_second": maxResources + 1, "quell_storm_object_writes_per_second": 2, "quell_storm_watches": 7} {
		if n[name] != want {
			t.Errorf("%s has %d series, want %d", name, n[name], want)
		}
	}
	if !registry.Unregister(w) {
		t.Error("the collector cannot be taken out again")
	}
}

func TestGapsNeverCountDown(t *testing.T) {
	a, b := watchOf("a", live.Watching), watchOf("b", live.Watching)
	var g gaps
	for i, c := range []struct {
		a, b *int
		want int
	}{{ptr.To(1), nil, 1}, {ptr.To(3), ptr.To(1), 4}, {nil, ptr.To(1), 4}, {ptr.To(0), ptr.To(2), 5}, {ptr.To(1), ptr.To(1), 7}} {
		var watches []live.Watch
		if c.a != nil {
			a.Gaps = *c.a
			watches = append(watches, a)
		}
		if c.b != nil {
			b.Gaps = *c.b
			watches = append(watches, b)
		}
		if g = g.count(watches); g.total != c.want {
			t.Errorf("step %d: %d gaps, want %d", i, g.total, c.want)
		}
	}
}
