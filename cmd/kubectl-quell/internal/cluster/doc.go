// Package cluster finds the objects that a command line names, in a cluster or in files, and asks the API server about
// them: their schema, a dry run of an apply, a patch of their managedFields.
package cluster
