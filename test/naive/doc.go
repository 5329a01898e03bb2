// Package naive is the incident that Quell answers, as a small operator to measure against: it writes the status of a Widget
// on every reconcile, with a fresh time in it, and hears of its own write.
//
//	Reconcile -> status update -> resourceVersion++ -> watch event -> enqueue -> Reconcile
//
// Its forms differ in how the time is cut and how the status is written:
//
//   - SecondStamp is what most operators have: metav1.Now(), which has a resolution of one second. The second write within
//     a second changes nothing, so the loop dies out as long as a round over all objects is quicker than that. It never
//     ends once a round takes longer: many objects, few workers, slow work, a busy API server.
//   - SubSecondStamp never ends.
//   - OnStatusWriter is SubSecondStamp's code moved onto controller/ssa.StatusWriter, which notices that the content
//     changes although nothing else did, and spaces the writes out.
//   - Mended is OnStatusWriter without the mistake: the time moves only together with something else.
//
// Install puts the CustomResourceDefinition of Widget into a cluster, NewManager makes a manager that runs the operator.
// The command compare in the folder below shows the forms and Quell's own operator side by side.
package naive
