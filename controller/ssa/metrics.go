package ssa

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Metrics on controller-runtime's registry.
var (
	callsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "quell_ssa_calls_total",
		Help: "Calls of an applier by kind, subresource and outcome; outcome Unchanged is a request that was not sent, Error one that failed.",
	}, []string{"kind", "subresource", "outcome"})
	requestSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "quell_ssa_request_duration_seconds",
		Help:    "Time of the apply requests that were sent, by kind and subresource.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
	}, []string{"kind", "subresource"})
	heldTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "quell_ssa_held_total",
		Help: "Calls whose result is to be looked at again after a pause, by kind, subresource and cause (Contended, Conflicted, SelfChurn, Throttled, Settling, Stale or DoesNotStick).",
	}, []string{"kind", "subresource", "cause"})
	conflictingTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "quell_ssa_conflicting_fields_total",
		Help: "Fields that others own with other values, when it begins, by kind, subresource and rule: Force took them, Yield left them to their owners, Report left the whole object.",
	}, []string{"kind", "subresource", "rule"})
	strippedCache = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "quell_ssa_cache_without_managed_fields",
		Help: "1 when the cache delivers objects of this kind without managedFields, so that lost ownership cannot be seen.",
	}, []string{"kind"})
)

// countConflicts counts the conflicts of a call that the call before did not have.
func (c *call) countConflicts() {
	count := func(rule Rule, n int) {
		if n > 0 {
			conflictingTotal.WithLabelValues(c.record.kind, c.opts.Subresource, string(rule)).Add(float64(n))
		}
	}
	if c.result.Sent {
		count(Force, len(c.result.Taken()))
	}
	if c.result.Outcome == Conflicted && c.result.Began {
		count(Report, len(c.result.Conflicts))
	}
	count(Yield, c.begun)
}

func init() {
	metrics.Registry.MustRegister(callsTotal, requestSeconds, heldTotal, conflictingTotal, strippedCache)
}
