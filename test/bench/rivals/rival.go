// Package rivals has the ways in which operators write status, each as its own documentation tells, on the same job: an App
// (quell.dev/v1alpha1) without ports becomes a Deployment, and its status tells the generation, the phase, the replica counts and
// the conditions.
package rivals

import (
	"context"
	"errors"
	"sync"

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
	// manager returns a manager that runs the reconciler with one worker, and the reconciler itself.
	manager func(ctx context.Context, config *rest.Config) (ctrl.Manager, reconcile.Reconciler, error)
}

// Start runs the reconciler with one worker in a cluster in which config/crd is installed, and returns it when its caches are filled.
// It ends with stop, which tells why it had ended before; a second stop tells the same. Several may run in one process, one after
// the other. Requests carry the user agent of config.
func (r Rival) Start(ctx context.Context, config *rest.Config) (_ reconcile.Reconciler, stop func() error, _ error) {
	ctx, cancel := context.WithCancel(ctx)
	mgr, reconciler, err := r.manager(ctx, config)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		return nil, nil, errors.Join(errors.New("the caches are not filled"), stop())
	}
	return reconciler, stop, nil
}
