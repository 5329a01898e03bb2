// Package managers lists the entries of managedFields: of single objects with notes on what is wrong with them, of a
// selection as a summary for each field manager, or as the pairs of managers that meet in the same fields.
package managers
