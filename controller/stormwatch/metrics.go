package stormwatch

import (
	"cmp"
	"slices"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/storm"
	"github.com/hduolab/quell/controller/storm/live"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxResources is how many resources have a series of their own; the rest is summed up as otherResources.
const (
	maxResources   = 20
	otherResources = "other"
)

var (
	descWrites = prometheus.NewDesc("quell_storm_writes_per_second",
		"Writes per second to the objects of a resource, of the 20 resources that are written most; the rest has the resource other.",
		[]string{"stormwatch", "group", "resource"}, nil)
	descObject = prometheus.NewDesc("quell_storm_object_writes_per_second",
		"Writes per second to an object that status.storms names.",
		[]string{"stormwatch", "group", "resource", "namespace", "name", "manager", "verdict"}, nil)
	descStorms  = prometheus.NewDesc("quell_storm_storms", "Storms that go on.", []string{"stormwatch"}, nil)
	descWatches = prometheus.NewDesc("quell_storm_watches",
		"Resources that spec asks for by the state of their watch; NotFound, NotWatchable and ClusterScoped also count those that have none.",
		[]string{"stormwatch", "state"}, nil)
	descGaps = prometheus.NewDesc("quell_storm_gaps_total",
		"Times that a watch was taken up at a later version than it had come to, so that writes may have been missed.", []string{"stormwatch"}, nil)
	descChanges = prometheus.NewDesc("quell_storm_changes_total", "Versions of objects that were seen.", []string{"stormwatch"}, nil)
	descs       = []*prometheus.Desc{descWrites, descObject, descStorms, descWatches, descGaps, descChanges}
	states      = []live.State{live.Starting, live.Watching, live.Forbidden, live.NotFound, live.Failing, NotWatchable, ClusterScoped}
)

// The states of quell_storm_watches beside those of a live.Watch, of what no watch was begun for.
const (
	NotWatchable  live.State = reasonNotWatchable
	ClusterScoped live.State = reasonClusterScoped
)

// gaps counts those of all watches, also of those that have ended since.
type gaps struct {
	total int
	last  map[schema.GroupResource]int
}

func (g gaps) count(watches []live.Watch) gaps {
	next := gaps{total: g.total, last: make(map[schema.GroupResource]int, len(watches))}
	for _, w := range watches {
		resource := w.GroupResource()
		next.last[resource] = w.Gaps
		if more := w.Gaps - g.last[resource]; more > 0 {
			next.total += more
		} else if more < 0 {
			next.total += w.Gaps // a watch that was begun anew
		}
	}
	return next
}

// view is what a look left for metrics.
type view struct {
	changes   int64
	resources []storm.Rate[schema.GroupResource]
	watches   map[live.State]int
	gaps      int
	storms    int
	named     []quellv1alpha1.Storm
	rates     map[storm.Key]float64
}

// byState counts the resources that spec asks for.
func byState(seen observed) map[live.State]int {
	n := map[live.State]int{ClusterScoped: len(seen.outside)}
	for _, w := range seen.watches {
		n[w.State]++
	}
	for _, m := range seen.missing {
		n[live.State(reasonOf(m))]++
	}
	return n
}

// show has metrics tell of a report, and of what else a look has seen.
func (r *running) show(report storm.Report, seen observed) {
	rates := make(map[storm.Key]float64, len(report.Findings))
	for i := range report.Findings {
		rates[report.Findings[i].Object] = report.Findings[i].Rate
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown.changes, r.shown.resources, r.shown.rates = report.Writes, report.Resources, rates
	r.shown.watches, r.shown.gaps = byState(seen), r.gaps.total
}

// setStorms has metrics tell of the number of storms.
func (r *running) setStorms(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown.storms = n
}

// setNamed has metrics tell of the storms that a status names.
func (r *running) setNamed(status *quellv1alpha1.StormWatchStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown.named = status.Storms
}

func (r *running) view() view {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shown
}

// Describe and Collect make a prometheus.Collector of the watches.
func (w *watches) Describe(out chan<- *prometheus.Desc) {
	for _, d := range descs {
		out <- d
	}
}

// Collect tells what the latest looks left.
func (w *watches) Collect(out chan<- prometheus.Metric) {
	for name, r := range w.snapshot() {
		collect(out, name, r.view())
	}
}

func collect(out chan<- prometheus.Metric, name string, v view) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{name}, labels...)...)
	}
	for _, r := range topResources(v.resources) {
		gauge(descWrites, r.PerSecond, r.Key.Group, r.Key.Resource)
	}
	for i := range v.named {
		s, manager := &v.named[i], ""
		if len(s.Managers) > 0 {
			manager = s.Managers[0]
		}
		gauge(descObject, v.rates[objectOf(s)], s.Group, s.Resource, s.Namespace, s.Name, manager, s.Verdict)
	}
	gauge(descStorms, float64(v.storms))
	for _, state := range states {
		gauge(descWatches, float64(v.watches[state]), string(state))
	}
	out <- prometheus.MustNewConstMetric(descGaps, prometheus.CounterValue, float64(v.gaps), name)
	out <- prometheus.MustNewConstMetric(descChanges, prometheus.CounterValue, float64(v.changes), name)
}

// topResources are those that are written most, and the sum of the others if there are any.
func topResources(rates []storm.Rate[schema.GroupResource]) []storm.Rate[schema.GroupResource] {
	rates = slices.Clone(rates)
	slices.SortStableFunc(rates, func(a, b storm.Rate[schema.GroupResource]) int { return cmp.Compare(b.PerSecond, a.PerSecond) })
	if len(rates) <= maxResources {
		return rates
	}
	rest := storm.Rate[schema.GroupResource]{Key: schema.GroupResource{Resource: otherResources}}
	for _, r := range rates[maxResources:] {
		rest.PerSecond += r.PerSecond
	}
	return append(rates[:maxResources:maxResources], rest)
}
