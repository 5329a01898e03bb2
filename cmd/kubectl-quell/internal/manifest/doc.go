// Package manifest answers what a server-side apply of manifests would do: whom it would conflict with, and why it would
// not be a no-op. It asks the API server by dry runs, which store nothing.
package manifest
