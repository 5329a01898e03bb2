package rivals

import (
	"context"

	"github.com/hduolab/quell/controller/app"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Quell is this project's own operator, set up as cmd/manager does.
func Quell() Rival {
	return Rival{
		Name:              "quell",
		How:               "server-side apply of child and status, each only if it would change something or win back what is lost",
		Source:            "https://github.com/hduolab/quell",
		SeesLostOwnership: true,
		manager:           quell,
	}
}

func quell(ctx context.Context, config *rest.Config) (ctrl.Manager, reconcile.Reconciler, error) {
	scheme := runtime.NewScheme()
	if err := app.AddToScheme(scheme); err != nil {
		return nil, nil, err
	}
	mgr, err := newManager(config, scheme, app.CacheOptions())
	if err != nil {
		return nil, nil, err
	}
	r, err := app.New(app.Options{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Events: mgr.GetEventRecorder("quell"),
	})
	if err != nil {
		return nil, nil, err
	}
	return mgr, r, r.SetupWithManager(ctx, mgr, 1)
}

// All returns the rivals, without Quell, the plainest first.
func All() []Rival {
	return []Rival{
		updateSecond(), updateSubsecond(), scaffold(), generationPredicate(), deepEqual(), mergePatch(), applyAlways(),
		fluxRuntime(), clusterAPI(), operatorPackage(),
	}
}
