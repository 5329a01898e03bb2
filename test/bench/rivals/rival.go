// Package rivals has the ways in which operators write status, each as its own documentation tells, on the same job: an App
// (quell.dev/v1alpha1) without ports becomes a Deployment, and its status tells the generation, the phase, the replica counts and
// the conditions.
package rivals

import (
	"context"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Rival is one way to write status.
type Rival struct {
	// Name is for tables and benchmark names: lower case, words joined by hyphens.
	Name string
	// How is one line of what it does, Source the address of the documentation that tells people to do so, of code that does, or, of a
	// known mistake, of a report.
	How, Source string
	// SeesLostOwnership tells that its reconcile notices when another manager has changed a field of the status that it wrote.
	SeesLostOwnership bool
	// Manager returns a manager that runs the reconciler with so many workers against a cluster in which config/crd is installed, and
	// the reconciler itself. Several may run in one process, one after the other. Requests carry the user agent of config.
	Manager func(ctx context.Context, config *rest.Config, workers int) (ctrl.Manager, reconcile.Reconciler, error)
}
