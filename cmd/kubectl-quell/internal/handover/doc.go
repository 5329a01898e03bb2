// Package handover changes who owns fields, and no value: transfer gives them to another manager, release to nobody,
// restore puts back what one of the two changed.
//
// It patches managedFields alone, under the object's uid and resourceVersion, so that a change in between is never
// overwritten.
package handover
