// Package app is the controller of App: it applies an App's Deployment and Service, watches them, and reflects their state
// into App.status.
//
// reconciler.go is the table of contents; observe.go reads, desired_*.go and status.go decide as pure functions, children.go
// applies, events.go tells people about transitions, watches.go says what wakes the loop, preflight.go refuses to start
// where nothing could work.
package app
