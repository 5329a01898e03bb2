// Package quiescence asserts that an operator is quiet: once it has converged, nothing is written any more.
//
// Check belongs at the end of any suite that runs an operator against a real API server: envtest, kind or whatever cluster. It
// waits until no object of the given kinds has been written for a while, and then wants it to stay so. If not, the error says who
// wrote what: object, field manager, path, the value before and after, and, when the writes do not stop, what kind of mistake it is:
//
//	It("is quiet at the end", func(ctx SpecContext) {
//		Expect(quiescence.Check(ctx, cfg, quiescence.Options{Kinds: []schema.GroupKind{
//			{Group: "example.com", Kind: "Widget"}, {Group: "apps", Kind: "Deployment"},
//		}})).To(Succeed())
//	})
//
// A fake client cannot show any of this: it has no resource versions that stay as they are, and no managedFields to tell writers by.
package quiescence
