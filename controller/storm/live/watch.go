package live

import (
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// State says how a watch is.
type State string

// The states of a watch.
const (
	// Starting: no answer yet.
	Starting State = "Starting"
	// Watching: changes are seen.
	Watching State = "Watching"
	// Forbidden: the user may not list or watch the resource. It is tried again after a pause.
	Forbidden State = "Forbidden"
	// NotFound: the resource is not served any more. It is tried again after a pause.
	NotFound State = "NotFound"
	// Failing: any other error. It is tried again after a pause.
	Failing State = "Failing"
)

// Watch is what is known of the watch of one resource, over all namespaces of a Source: the worst of their states.
type Watch struct {
	Resource
	State State
	// Err is why it is not Watching.
	Err error
	// Gaps is how often the watch was taken up at a later version than the one it had come to.
	Gaps int
}

// severity of the states, from good to bad.
var severity = []State{Watching, Starting, NotFound, Forbidden, Failing}

// add takes in how the watch is in one namespace.
func (w *Watch) add(state State, err error, gaps int) {
	w.Gaps += gaps
	if slices.Index(severity, state) > slices.Index(severity, w.State) {
		w.State, w.Err = state, err
	}
}

// stateOf tells what an error means for a watch.
func stateOf(err error) State {
	switch {
	case err == nil:
		return Watching
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		return Forbidden
	case apierrors.IsNotFound(err):
		return NotFound
	}
	return Failing
}
