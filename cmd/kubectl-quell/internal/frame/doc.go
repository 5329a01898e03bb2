// Package frame is what all commands of kubectl quell stand in: their streams, the flags that name a cluster, colour,
// the clock, and the exit codes.
package frame
