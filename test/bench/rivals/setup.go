package rivals

import (
	"context"
	"errors"
	"fmt"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// design is how a rival is put together.
type design struct {
	// add registers App's kind in the rival's scheme; nil stands for App as it is.
	add func(*runtime.Scheme)
	// object is an empty object of App's kind, as registered; nil stands for an App.
	object client.Object
	// filters are the predicates of the watch of Apps. Deployments are watched without any.
	filters []predicate.Predicate
	// reconciler makes the reconciler on the manager's client.
	reconciler func(client.Client) reconcile.Reconciler
}

// manager implements Rival.manager. It watches Apps and the Deployments that they own, as a scaffolded operator does.
func (d design) manager(_ context.Context, config *rest.Config) (ctrl.Manager, reconcile.Reconciler, error) {
	scheme := runtime.NewScheme()
	err := clientgoscheme.AddToScheme(scheme)
	if d.add == nil {
		err = errors.Join(err, quellv1alpha1.AddToScheme(scheme))
	} else {
		d.add(scheme)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("register the kinds: %w", err)
	}
	mgr, err := newManager(config, scheme, cache.Options{})
	if err != nil {
		return nil, nil, err
	}
	object := d.object
	if object == nil {
		object = &quellv1alpha1.App{}
	}
	r := d.reconciler(mgr.GetClient())
	err = ctrl.NewControllerManagedBy(mgr).
		Named("app").
		For(object, builder.WithPredicates(d.filters...)).
		Owns(&appsv1.Deployment{}).
		Complete(r)
	if err != nil {
		return nil, nil, fmt.Errorf("set up the controller: %w", err)
	}
	return mgr, r, nil
}

// newManager makes a manager that serves nothing. Controllers of one name may follow one another in a process.
func newManager(cfg *rest.Config, scheme *runtime.Scheme, o cache.Options) (ctrl.Manager, error) {
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:     scheme,
		Cache:      o,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		return nil, fmt.Errorf("set up the manager: %w", err)
	}
	return mgr, nil
}

// named is an empty Deployment with the name of an App's.
func named(app client.Object) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: app.GetNamespace(), Name: app.GetName()}}
}

// createOrUpdate brings the Deployment of an App to its desired state with controllerutil.CreateOrUpdate and returns it.
func createOrUpdate(ctx context.Context, c client.Client, app *quellv1alpha1.App) (*appsv1.Deployment, error) {
	deployment := named(app)
	_, err := controllerutil.CreateOrUpdate(ctx, c, deployment, mutate(deployment, app, app, c.Scheme()))
	return deployment, err
}

// createOrPatch is the same with controllerutil.CreateOrPatch. The owner is the App in the type that the scheme knows.
func createOrPatch(ctx context.Context, c client.Client, app *quellv1alpha1.App, owner client.Object) (*appsv1.Deployment, error) {
	deployment := named(app)
	_, err := controllerutil.CreateOrPatch(ctx, c, deployment, mutate(deployment, app, owner, c.Scheme()))
	return deployment, err
}

func mutate(d *appsv1.Deployment, app *quellv1alpha1.App, owner metav1.Object, scheme *runtime.Scheme) controllerutil.MutateFn {
	return func() error {
		set(d, app)
		return controllerutil.SetControllerReference(owner, d, scheme)
	}
}
