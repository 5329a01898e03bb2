package rivals

// scaffold is what Kubebuilder's getting-started guide ends with.
func scaffold() Rival {
	return Rival{
		Name:              "kubebuilder-scaffold",
		How:               "meta.SetStatusCondition and Status().Update at each reconcile, no predicate",
		Source:            "https://book.kubebuilder.io/getting-started",
		SeesLostOwnership: true,
		manager:           updating(updater{report: report}).manager,
	}
}
