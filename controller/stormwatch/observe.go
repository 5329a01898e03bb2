package stormwatch

import (
	"context"
	"time"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/storm"
	"github.com/hduolab/quell/controller/storm/live"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// observed is everything that a look reads; what follows has no client.
type observed struct {
	// watch is the StormWatch, with the status that was last written.
	watch    *quellv1alpha1.StormWatch
	terms    terms
	findings []storm.Finding
	watches  []live.Watch
	missing  []live.Missing
	outside  []live.Resource
	// isDiscovered tells that all resources were discovered once; discoveryFailed that the latest discovery was not complete.
	isDiscovered, discoveryFailed bool
	now                           time.Time
}

// observe reads a StormWatch and what its source has found; the source is nil when the StormWatch does not exist or is on its way
// out, and then does not run any more.
func (r *Reconciler) observe(ctx context.Context, key client.ObjectKey) (observed, *running, error) {
	watch := &quellv1alpha1.StormWatch{}
	err := r.Client.Get(ctx, key, watch)
	if client.IgnoreNotFound(err) != nil {
		return observed{}, nil, err
	}
	if err != nil || !watch.DeletionTimestamp.IsZero() {
		r.watches.stop(key.Name)
		return observed{}, nil, nil
	}
	watch = r.withNewestStatus(watch)
	now := r.Clock.Now()
	source := r.watches.follow(ctx, watch, now)
	if source == nil {
		return observed{}, nil, nil
	}
	source.discover(ctx, r.Clients, &watch.Spec, now)
	report := source.source.Report()
	seen := observed{
		watch: watch, terms: termsOf(&watch.Spec, source.settings), findings: report.Findings, watches: source.source.Watches(),
		missing: source.found.missing, outside: source.found.outside,
		isDiscovered: source.found.ever, discoveryFailed: source.found.failed, now: r.Clock.Now(),
	}
	source.gaps = source.gaps.count(seen.watches)
	source.show(report, seen)
	return seen, source, nil
}

func termsOf(spec *quellv1alpha1.StormWatchSpec, s settings) terms {
	t := terms{threshold: s.storm.Rate, named: defaultStorms}
	if spec.MaxStorms > 0 {
		t.named = int(spec.MaxStorms)
	}
	return t
}

// withNewestStatus is a StormWatch with the status that was last written, should the cache be behind it.
func (r *Reconciler) withNewestStatus(watch *quellv1alpha1.StormWatch) *quellv1alpha1.StormWatch {
	newest, ok := r.status.Newest(watch).(*quellv1alpha1.StormWatch)
	if !ok || newest == watch {
		return watch
	}
	watch = watch.DeepCopy()
	watch.Status = newest.Status
	return watch
}

// memory is what a look leaves to the next one.
type memory struct {
	storms   []ongoing
	coverage coverage
	// failing is whether discovery is not complete for long.
	failing steady[bool]
	// count is the number of storms as it was reported.
	count int
	// settled is the generation for which it is known of all watches how they are.
	settled int64
	history history
	// said is the status of which people were told last: not the one that is in place, which may have come there without an answer.
	said *quellv1alpha1.StormWatchStatus
}

// recall is the memory of a loop that begins: what the status says, and when it was written.
func recall(watch *quellv1alpha1.StormWatch, now time.Time) memory {
	m := memory{storms: restore(&watch.Status, now), coverage: restoreCoverage(&watch.Status), said: watch.Status.DeepCopy()}
	if watch.Status.StormCount != nil {
		m.count = int(*watch.Status.StormCount)
	}
	for _, e := range watch.ManagedFields {
		if e.Manager == statusManager && e.Subresource == "status" && e.Operation == metav1.ManagedFieldsOperationApply && e.Time != nil {
			m.history = m.history.wrote(change, e.Time.Time)
		}
	}
	return m
}
