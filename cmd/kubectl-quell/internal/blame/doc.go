// Package blame shows an object with the owners of each of its fields: as YAML with the owners in the left margin, or as
// a report.
package blame
