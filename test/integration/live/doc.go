// Package live holds the suite of controller/storm/live: a source that watches a real API server, as a user who may read only.
// Each claim of that package is a specification here; what the source sends is seen on the wire and in the audit log.
package live
