// Package chart holds the Helm chart in config/chart to the kustomizations in config/: both render the same objects, every option
// makes objects of the Kubernetes API, and wrong values are refused by the name of their field.
//
// It is a module of its own, since Helm is nothing that the operator needs. It pins Helm and kustomize as tools, too: go tool helm.
package chart
