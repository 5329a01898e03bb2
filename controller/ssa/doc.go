// Package ssa writes Kubernetes objects by server-side apply only when something changed.
//
// An Applier takes the full apply configuration that one field manager wants and the object as the cache has it, and
// sends a request only if the object's managedFields do not already say that this manager owns exactly these fields with
// these values. A converged object costs no request, also after a restart; in the steady state it costs one hash.
// A StatusWriter is the same for the status subresource and carries the transition times of conditions over.
//
// What an Applier does not trust, and what it does about it:
//
//   - the cache may be older than its own last write: it then works on what the API server answered to that write, for a minute;
//     then it looks past the cache, for versions go back where the API server is restored from a backup;
//   - the cache may have dropped managedFields: it says so once, and compares values only;
//   - managedFields may have been wiped on the server: it takes its fields back with one write, but those that it gives up
//     later stay, since the API server then books all that was there on the manager "before-first-apply" as well;
//   - the object may be gone or another one of the same name: outcomes Gone and Replaced;
//   - the API server may not keep what was sent (pruned by the schema, changed by admission): outcome DoesNotStick
//     with the paths, and the same content is not sent again until SchemaChanged is called or Options.Recheck has passed;
//   - the answer to a request may be lost: nothing that was remembered counts until the next answer;
//   - another writer may hold fields with other values: Intent.Rules say, for the object and field by field, whether to take
//     them, to yield to their owner, or to apply nothing and report. What is yielded is left out of the apply while somebody
//     else owns it, costs nothing while it stands, and is never given up as its only owner;
//   - another writer may leave something beside which the content is not valid, such as a list item under another key: under
//     rule Force, and if a dry run shows that this heals it, it is taken over and removed;
//   - another writer may take fields back: after a few repairs outcome Contended, with growing pauses;
//   - the caller may produce other content on each call although nothing it depends on changed (a time, a counter):
//     outcome SelfChurn with the paths, with growing pauses. What is held back is written when the pause ends; Result
//     tells when.
//
// The package imports no API type of any operator: it learns lists' keys and merge rules from a type converter as
// generated beside apply configurations (for built-in kinds k8s.io/client-go/applyconfigurations.NewTypeConverter).
package ssa
