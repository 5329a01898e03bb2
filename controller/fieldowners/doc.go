// Package fieldowners reads metadata.managedFields: who owns which field of an object, how ownership moved between two
// versions of it, and whom a rejected server-side apply conflicted with. It attributes an object's values to their owners
// (Attribute), writes and reads paths (FormatPath, ParsePath), and computes managedFields that hand fields over (Handover).
//
// It is pure: no client, no clock, no cache. Every function is safe for concurrent use, takes managedFields of any shape
// without panicking, and reports an entry that cannot be decoded as one with unknown fields instead of dropping it.
//
// managedFields names the last winner of a field, not every writer: a writer that only removes fields leaves no entry,
// a mutation by admission is attributed to the request's manager, times have a resolution of one second and may be
// missing. "Nobody known" is therefore a valid answer of everything here.
package fieldowners
