// Package storm finds write storms in a stream of changes: which object is written all the time, by which field manager, which
// of its fields move, and what kind of mistake that is.
//
// It is pure: no client and no clock. Feed a Detector with one Change for each version that a watch or an audit log shows, and
// ask for a Report whenever one is wanted. Writers come from differences of managedFields between consecutive versions, fields
// from the objects themselves or, where a change carries metadata only, from the field sets. Both can be unknown: a writer who
// only removes fields leaves no entry, and the report then says so.
//
// Memory is bounded whatever the number of objects. A Sketch finds the objects that are written most; only Options.Hot of
// them keep their last version and a window of what changed in the versions before. What a hot object costs is at most its own
// size and Options.Window times 8 changed fields of about 300 bytes.
//
// The kinds of storms, and what tells them apart, are at Verdict.
package storm
