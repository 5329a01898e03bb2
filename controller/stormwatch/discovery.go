package stormwatch

import (
	"context"
	"reflect"
	"slices"
	"time"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/storm/live"
	"k8s.io/apimachinery/pkg/runtime/schema"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	discoverEach = time.Minute
	// A failed discovery is tried again after retryEach; a change of CustomResourceDefinitions is looked at once they have been left
	// alone for settleFor, and no more often than changesEach.
	retryEach   = 10 * time.Second
	settleFor   = time.Second
	changesEach = 5 * time.Second
	// discoverWithin bounds one discovery.
	discoverWithin = 30 * time.Second
)

// discovered is what the latest discovery brought.
type discovered struct {
	selector  live.Selector
	resources []live.Resource
	missing   []live.Missing
	// outside are resources that spec names, and whose objects belong to none of its namespaces.
	outside []live.Resource
	// at is when it was, zero for never; failed that not all could be discovered, ever that all was for this selector.
	at     time.Time
	failed bool
	ever   bool
}

// isDue reports whether it is time to discover again, when CustomResourceDefinitions last changed at the time in changed.
func (d discovered) isDue(selector live.Selector, changed, now time.Time) bool {
	age := now.Sub(d.at)
	switch {
	case d.at.IsZero() || !reflect.DeepEqual(d.selector, selector) || age >= discoverEach:
		return true
	case d.failed:
		return age >= retryEach
	}
	return changed.After(d.at.Add(-settleFor)) && now.Sub(changed) >= settleFor && age >= changesEach
}

// discover brings the set of watched resources up to date when that is due.
func (r *running) discover(ctx context.Context, clients Clients, spec *quellv1alpha1.StormWatchSpec, now time.Time) {
	selector := selectorOf(spec)
	if !r.found.isDue(selector, time.Unix(0, r.changed.Load()), now) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, discoverWithin)
	defer cancel()
	resources, missing, err := live.Discover(ctx, clients.Discovery, clients.Metadata, selector)
	if err != nil && !r.found.failed {
		logf.FromContext(ctx).Error(err, "not all resources of the cluster can be discovered")
	}
	before := r.found
	r.found = discovered{selector: selector, missing: missing, at: now, failed: err != nil}
	r.found.ever = err == nil || before.ever && reflect.DeepEqual(before.selector, selector)
	if err != nil && reflect.DeepEqual(before.selector, selector) {
		resources, r.found.missing = withFormer(resources, before.resources), before.missing
	}
	r.found.resources, r.found.outside = within(resources, spec, selector)
	r.source.Watch(r.found.resources)
}

// withFormer adds what was found before: what cannot be discovered now need not be gone.
func withFormer(resources, former []live.Resource) []live.Resource {
	all := slices.Clone(resources)
	for _, r := range former {
		if !slices.ContainsFunc(resources, func(o live.Resource) bool { return o.GroupResource() == r.GroupResource() }) {
			all = append(all, r)
		}
	}
	return all
}

// within splits off the resources whose objects belong to no namespace where spec names namespaces; those that spec.kinds names
// are told.
func within(resources []live.Resource, spec *quellv1alpha1.StormWatchSpec, selector live.Selector) (inside, outside []live.Resource) {
	if len(spec.Namespaces) == 0 {
		return resources, nil
	}
	for _, r := range resources {
		switch {
		case r.IsNamespaced:
			inside = append(inside, r)
		case slices.Contains(selector.Kinds, schema.GroupKind{Group: r.Group, Kind: r.Kind}):
			outside = append(outside, r)
		}
	}
	return inside, outside
}

func selectorOf(spec *quellv1alpha1.StormWatchSpec) live.Selector {
	s := live.Selector{CustomResources: spec.CustomResources == quellv1alpha1.CustomResourcesAll}
	for _, k := range spec.Kinds {
		s.Kinds = append(s.Kinds, schema.GroupKind{Group: groupIn(k.Group), Kind: k.Kind})
	}
	return s
}

// resource finds one of those that are watched.
func (d discovered) resource(r schema.GroupResource) (live.Resource, bool) {
	i := slices.IndexFunc(d.resources, func(o live.Resource) bool { return o.GroupResource() == r })
	if i < 0 {
		return live.Resource{}, false
	}
	return d.resources[i], true
}
