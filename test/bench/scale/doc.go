// Package scale measures how the operator, as the process of cmd/manager, fares with many Apps on a control plane of its own: what it
// asks for and what it takes until all are Ready, after a restart, and at rest.
//
// Each App has a Deployment and a Service. The benchmark plays the people who create Apps, from several clients, and Kubernetes'
// Deployment controller, which tells of each new generation once that all its Pods are available. Linux only: processor times
// come from /proc.
package scale
