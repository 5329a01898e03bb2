// Package app is the controller of App: it applies an App's Deployment, Service and whatever else the App asks for, watches
// these children, and reflects their state into App.status.
//
// reconciler.go is the table of contents, kinds.go the table of the children's kinds; observe.go reads (lazywatch.go where the
// cluster may lack the kind, or the operator the right), desired_*.go and status.go decide as pure functions, children.go applies,
// events.go tells people about transitions, watches.go says what wakes the loop, preflight.go refuses to start where nothing
// could work. While the cache holds the very objects of the last look, settled.go spares all that follows observe.go. A rollout that
// makes no progress has its Pods read now and then (stuck.go), and causes.go words what they tell.
//
// replicas.go decides who sets the number of Pods, scalers.go finds the autoscalers and autoscaling.go tells of them. No cache is
// trusted with taking Pods away: again.go reads past it first, and what holds for one version of an object only is applied to no
// other (ssa.Intent.Exact).
package app
