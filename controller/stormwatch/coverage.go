package stormwatch

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/storm/live"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The reasons for which a resource is not watched, and for which Ready is False.
const (
	reasonForbidden     = "Forbidden"
	reasonNotFound      = "NotFound"
	reasonNotWatchable  = "NotWatchable"
	reasonClusterScoped = "ClusterScoped"
	reasonFailing       = "Failing"
)

// labelAggregate on a ClusterRole, with the value "true", gives its rights to the operator's watches.
const labelAggregate = "stormwatch.quell.dev/aggregate"

// maxNotWatched bounds status.notWatched, as its schema does.
const maxNotWatched = 64

// coverage is how the watches are, without what does not last.
type coverage map[schema.GroupResource]steady[live.State]

// followWatches takes how the watches are now. That a resource is seen, or must not be, is taken at once. Anything else
// has to last, so that a restart of an API server does not show.
func followWatches(before coverage, watches []live.Watch, now time.Time) coverage {
	after := make(coverage, len(watches))
	for _, w := range watches {
		resource := w.GroupResource()
		state, found := before[resource]
		if !found {
			state.value = live.Starting
		}
		after[resource] = followWatch(state, w.State, now)
	}
	return after
}

func followWatch(state steady[live.State], seen live.State, now time.Time) steady[live.State] {
	switch seen {
	case live.Watching, live.Forbidden:
		return state.see(seen, 0, now)
	case live.Starting:
		return state.see(live.Failing, hold, now) // no answer for that long is a failure too
	}
	return state.see(seen, hold, now)
}

// isSettled reports whether it is known of all watches how they are.
func (c coverage) isSettled() bool {
	for _, state := range c {
		if state.value == live.Starting {
			return false
		}
	}
	return true
}

func (c coverage) watched() int32 {
	var n int32
	for _, state := range c {
		if state.value == live.Watching {
			n++
		}
	}
	return n
}

// restoreCoverage takes over what a status says is not watched.
func restoreCoverage(status *quellv1alpha1.StormWatchStatus) coverage {
	c := coverage{}
	for _, row := range status.NotWatched {
		switch state := live.State(row.Reason); state {
		case live.Forbidden, live.NotFound, live.Failing:
			c[schema.GroupResource{Group: groupIn(row.Group), Resource: row.Resource}] = steady[live.State]{value: state}
		}
	}
	return c
}

// notWatched are the rows of what spec asks for and is not seen, in the order of their names.
func notWatched(c coverage, missing []live.Missing, outside []live.Resource) []quellv1alpha1.NotWatched {
	var rows []quellv1alpha1.NotWatched
	for resource, state := range c {
		switch state.value {
		case live.Forbidden, live.NotFound, live.Failing:
			rows = append(rows, row(resource.Group, resource.Resource, string(state.value)))
		}
	}
	for _, m := range missing {
		rows = append(rows, row(m.Group, m.Kind, reasonOf(m)))
	}
	for _, r := range outside {
		rows = append(rows, row(r.Group, r.Resource, reasonClusterScoped))
	}
	slices.SortFunc(rows, func(a, b quellv1alpha1.NotWatched) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
	rows = slices.CompactFunc(rows, func(a, b quellv1alpha1.NotWatched) bool { return a.Group == b.Group && a.Resource == b.Resource })
	return rows[:min(len(rows), maxNotWatched)]
}

func reasonOf(m live.Missing) string {
	if m.IsServed {
		return reasonNotWatchable
	}
	return reasonNotFound
}

func row(group, resource, reason string) quellv1alpha1.NotWatched {
	return quellv1alpha1.NotWatched{Group: groupWord(group), Resource: resource, Reason: reason, Message: advice(group, resource, reason)}
}

// advice says what to do. It has no word of the API server, which could move.
func advice(group, resource, reason string) string {
	switch reason {
	case reasonForbidden:
		return fmt.Sprintf(`the operator may not list and watch %s of API group %q: put the label %s: "true" on a ClusterRole that allows it, `+
			`as those of config/stormwatch do; it is tried again each minute`, resource, group, labelAggregate)
	case reasonNotFound:
		return "the API server does not serve it: install its CustomResourceDefinition, or correct group and kind; it is looked for again each minute"
	case reasonNotWatchable:
		return "the API server serves it and does not let it be watched: take it out of spec.kinds"
	case reasonClusterScoped:
		return "its objects belong to no namespace: use a StormWatch without spec.namespaces for it"
	}
	return "the API server answers its watch with errors, which the operator's log has; it is tried again"
}

// core is how the group that has no name is written.
const core = "core"

func groupWord(group string) string { return cmp.Or(group, core) }

func groupIn(word string) string {
	if word == core {
		return ""
	}
	return word
}
