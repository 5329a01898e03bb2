// Package stormwatch is the controller of StormWatch: it watches the cluster for write storms (package storm/live) and reports
// them in StormWatch.status, as events and as metrics.
//
// reconciler.go is the table of contents. watches.go keeps one live source per StormWatch, discovery.go the resources that it
// watches, crds.go notices that there are others; observe.go reads them. What follows is pure: storms.go follows storms from look
// to look, coverage.go the watches, status.go puts both into words, pace.go says when that may be written. report.go writes,
// events.go tells people, metrics.go tells Prometheus, preflight.go refuses to start where nothing could work.
//
// A detector of storms must be none. What is seen all the time moves all the time, so nothing of it reaches status as it is: rates
// become steps with a dead band (rate.go), a value gives way to another only once that has lasted (steady.go), a storm keeps its
// place and its words until it has ended. An answer to a change of spec is written at once; news of a storm and a change of Ready
// wait until five seconds have passed since the last write, anything else a minute, and five where only a rate moved.
package stormwatch
