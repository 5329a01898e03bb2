package live

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
