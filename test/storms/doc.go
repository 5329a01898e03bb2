// Package storms makes write storms: for each kind of mistake that operators make it has a small program that makes it, against
// a real API server, and says in data what a detector should find.
//
// Each program is in a file of its own, has field managers of its own, which are its user agents too, and writes to objects in a
// namespace of its own, at a rate that can be set. All returns the table of them; tests, documentation and demonstrations read
// the same. Install puts the kinds into the cluster that they write to, and Storm.Run runs one.
//
// The command in the folder below runs one by hand:
//
//	go run ./test/storms/cmd list
//	go run ./test/storms/cmd counter --for 30s
package storms
