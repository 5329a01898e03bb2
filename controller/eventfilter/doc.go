// Package eventfilter has the predicates that keep an operator from being woken by its own writes, and by changes that
// cannot matter to it. Each says what it drops and what then still heals it.
//
// None of them remembers resourceVersions: an apply that changes nothing returns the object's current version, which may be
// somebody else's write, and a filter that takes it for its own loses that event. They decide by content alone, so they
// work after a restart and for every replica of an operator. All are safe for concurrent use.
package eventfilter
