// Package differential holds the differential test of controller/ssa: whenever its check says that nothing is to be sent, a real
// apply of the same content, with the same field manager and force, must leave the object's resourceVersion as it is.
//
// Custom resources of random schemas and the built-in kinds that an operator has as children are written to by random others
// (appliers with and without force, updates, merge and JSON patches, transfers of ownership, removal of managedFields, deletion,
// new defaults in the schema) and by the code under test, through a client whose writes are counted. All claims of a round are
// verified together, when the last write is more than a second ago, for the API server keeps the times in managedFields to the
// second and takes an apply within it for none.
//
// What is verified of each kind of claim:
//
//   - Unchanged: the real apply makes no new version. There are six exceptions. In five of them it makes one in which no value and no
//     field of ours differs: an empty map, an empty set or map list, and null are the same as none outside of atomic values (nobody
//     can own such a list, a map that loses its last field is null after one apply and empty after the next, and one that begins gets
//     its defaults); content with null or empty fields that the schema prunes makes a version at each apply; an atomic value to which
//     the API server added defaults is another one to it than the content's, so that an apply may move our entry in managedFields
//     behind the others, once, or take the value from a manager who owns it too; content without any field has the API server make
//     an entry for the fields of an object whose managedFields were removed. In the sixth it drops what it asks for: a map that is {}
//     in the content, when nobody owns what is in the map and an empty set or map list is among it. The next apply brings it back,
//     filled with defaults; if such a list is one of these, the one after that drops it again, without end.
//   - DoesNotStick without a request: the real apply changes nothing but the version and the times, or no more than those five do.
//   - Conflicted: the real apply without force is refused.
//   - an error: the real apply is refused as well.
//
// Before a claim is verified the object is stored as it is read, by a patch that says nothing: what is stored may lack the schema's
// newest defaults, or have content that the schema prunes when it is read, and then any write makes a version, whatever it says.
//
// A request that changes nothing is a fault, but for three sorts of them, which are counted:
//
//   - the object that the caller gave was behind the API server's, which then already had the content;
//   - content that does not stick is sent once by each process, for only the answer shows what is kept;
//   - an atomic value that has more than is wanted, no default that the schema or the library knows, is sent once by each process:
//     managedFields do not tell what the API server added from what the content had before.
//
// QUELL_SEED is the seed of all that is random, QUELL_STEPS the number of steps, where one step is one write of others or one
// change of what we want. A seed gives the same schemas and, for each object, the same writes.
package differential
