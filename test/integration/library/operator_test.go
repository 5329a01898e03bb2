package library_test

// The code between marks is shown in the documents that the mark names; a test in docs compares them.

import (
	"context"
	"errors"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/applyconfig"
	quellv1alpha1ac "github.com/hduolab/quell/applyconfig/quell/v1alpha1"
	"github.com/hduolab/quell/controller/eventfilter"
	"github.com/hduolab/quell/controller/ssa"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// begin docs/library.md
const statusManager = "my-operator-status"

type Reconciler struct {
	client.Client
	status *ssa.StatusWriter
}

func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	app, child := &quellv1alpha1.App{}, &appsv1.Deployment{}
	if err := r.Get(ctx, req.NamespacedName, app); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.Get(ctx, req.NamespacedName, child); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	return r.report(ctx, app, child)
}

// end

// begin README.md docs/library.md
func (r *Reconciler) report(ctx context.Context, app *quellv1alpha1.App, child *appsv1.Deployment) (ctrl.Result, error) {
	status := quellv1alpha1ac.AppStatus().
		WithObservedGeneration(app.Generation).
		WithReadyReplicas(child.Status.ReadyReplicas)
	written, err := r.status.Write(ctx, ssa.Intent{
		Desired: quellv1alpha1ac.App(app.Name, app.Namespace).WithStatus(status), // the full status, every time
		Live:    app,
		Inputs:  ssa.Version(child), // what the status was computed from
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: written.RetryAfter}, nil
}

func Setup(mgr ctrl.Manager) error {
	types := applyconfig.NewTypeConverter(mgr.GetScheme()) // generated beside your apply configurations
	o := ssa.Options{Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Types: types, FieldManager: statusManager}
	status, err := ssa.NewStatusWriter(ssa.StatusOptions{Options: o})
	if err != nil {
		return err
	}
	own := eventfilter.OwnWrites{Manager: statusManager, Subresource: "status", Types: types, Scheme: mgr.GetScheme()}
	return ctrl.NewControllerManagedBy(mgr).
		For(&quellv1alpha1.App{}, builder.WithPredicates(own.Dropped())). // its own status writes do not wake it
		Owns(&appsv1.Deployment{}).
		Complete(&Reconciler{Client: mgr.GetClient(), status: status})
}

// end

// begin docs/library.md
// Run is the whole program: main calls it with ctrl.SetupSignalHandler() and ctrl.GetConfigOrDie().
func Run(ctx context.Context, config *rest.Config, o ctrl.Options) error {
	o.Scheme = runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(o.Scheme), quellv1alpha1.AddToScheme(o.Scheme)); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, o)
	if err != nil {
		return err
	}
	if err := Setup(mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// end
