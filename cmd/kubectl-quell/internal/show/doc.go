// Package show turns what a command found into text: escaped for terminals, coloured, in columns.
//
// Whatever was read from a cluster goes through Escape before it is printed, so that no name or value can move the cursor,
// change colours or pretend to be another line.
package show
