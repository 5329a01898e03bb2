// Package model explores what can happen to an operator: every order of what it hears, does and misses, up to a number of moves.
// The operator's own code runs, with controller-runtime's event sources, filters and handlers, against a small API server in memory.
//
// # What is modelled
//
// A Server has objects with their resourceVersion, generation, uid and managedFields. It knows create, update, merge patch,
// server-side apply (object and status, force, dry run, resourceVersion and uid as preconditions) and delete with preconditions and
// finalizers. The merge, the conflicts and the entries of managedFields are those of the API server's own field manager, which is
// structured-merge-diff with the types' schemas. A custom resource is defaulted and pruned by the API server's own code, a Deployment
// and a Service take the form of their Go types and the defaults of defaults.go. A request that changes nothing leaves resourceVersion
// alone, by the API server's own comparison. Times are cut to seconds of a clock that only moves of the explorer set. Versions are
// counted for each object by itself, which clients must not notice. TestServerAgrees compares all this with a real API server.
//
// An operator is set up with a manager as in its main. What it reads through the cache is what the cache has heard so far; what it
// reads past the cache is what the server has; what it writes goes to the server at once. Its queue is that of controller-runtime's
// priority queue with one worker: an item is in it once, ready or for later, and an event makes one for later ready.
//
// The moves are: a cache hears of the next event of one kind; the operator reconciles; time passes until it wants to look again; the
// Deployment controller takes a step; the garbage collector deletes what has no owner any more; and, within budgets: the operator is
// restarted and lists anew; a new leader takes over, and the old one, with its memory and its cache, acts once more at any later time;
// the answer to the operator's nth write of a reconcile is lost, or the write is, or the operator dies after it; somebody acts between
// two writes of a reconcile; a cache that lags relists, so that it hears of several versions as one; a rival or a user does one of the
// scenario's deeds.
//
// Explore walks all paths of such moves breadth first. Paths that lead to the same state are walked on once: the same objects, caches
// and undelivered events, the same queue, clock and budgets, the same use of the bound, and the same memory of the operator, of which
// every field is compared, also those that are not exported. At every state the world stops and runs to quiet in a fair order. Then
// nothing may be queued or written any more, the scenario's Desired must hold, no more requests may have been accepted than its Bound
// allows for the moves of the path, and another look at everything, before and after a restart, must not bring about a request.
//
// # What is not modelled
//
// Validation beyond that of the merge and, for a custom resource, of its schema without rules in CEL; admission, authorization, quotas, conversion between versions, other subresources, JSON patches,
// foreground deletion and namespaces that end. A reconcile is one move: others act before it, after it, and with the budget for it
// between two of its writes, but not between two of its reads. Caches list what the server has, never something older. Kinds that the
// cluster lacks, or that the operator must not read, are missing for ever. The defaults of other built-in kinds, the addresses of a
// Service, Pods and ReplicaSets: of the latter there is one for each template of a Deployment, without owner, as the memory of the
// Deployment controller. Failed rollouts.
//
// # How to read a path
//
// A counterexample is one of the shortest paths, one line for each move with its number, below it the writes of the operator and what
// became of them, and how the reconcile ended. After the line "the world stops" the moves are those of the run to quiet.
package model
