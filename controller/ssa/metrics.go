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
		Help: "Calls whose result is to be looked at again after a pause, by kind, subresource and cause (Contended, Conflicted, SelfChurn, Throttled, Settling or DoesNotStick).",
	}, []string{"kind", "subresource", "cause"})
	strippedCache = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "quell_ssa_cache_without_managed_fields",
		Help: "1 when the cache delivers objects of this kind without managedFields, so that lost ownership cannot be seen.",
	}, []string{"kind"})
)

func init() {
	metrics.Registry.MustRegister(callsTotal, requestSeconds, heldTotal, strippedCache)
}
