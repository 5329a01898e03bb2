// Package controller holds what the operator is made of.
//
// The loop of an operator built with it, in words: an event passes package eventfilter only if something changed that is
// not our own writing. Reconcile observes once, decides with pure functions, applies each child through an ssa.Applier,
// and reports through an ssa.StatusWriter. Both compare with what the object's managedFields say we own, and send nothing
// when nothing would change. So a converged object costs no request, whoever wakes the loop.
//
// Who owns which field:
//
//   - users own App.spec and App.metadata;
//   - field manager "quell-app" owns what the operator sets on children, by server-side apply;
//   - field manager "quell-app-status" owns App.status but for other controllers' conditions, by server-side apply on the
//     status subresource;
//   - Kubernetes' own controllers own the status of the children.
package controller
