package naive

import (
	"context"
	"fmt"
	"time"

	"github.com/hduolab/quell/controller/ssa"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Form is one way to write the status.
type Form string

// The forms, as the package comment tells them.
const (
	SecondStamp    Form = "SecondStamp"
	SubSecondStamp Form = "SubSecondStamp"
	OnStatusWriter Form = "OnStatusWriter"
	Mended         Form = "Mended"
)

// FieldManager is the one of OnStatusWriter and Mended. The other forms leave it to the API server, as the incident's code did.
const FieldManager = "naive-widget-status"

// Options say which operator to run.
type Options struct {
	Form Form
	// Workers is the number of concurrent reconciles; 0 means 1, as in controller-runtime.
	Workers int
	// Work is how long a reconcile takes before it writes: whatever a real operator does besides.
	Work time.Duration
	// Clock is the source of the stamps; nil means the real one.
	Clock clock.PassiveClock
}

// Reconciler is the operator. Safe for concurrent use on different Widgets.
type Reconciler struct {
	Options
	client client.Client
	writer *ssa.StatusWriter // of OnStatusWriter and Mended
}

// NewReconciler returns the operator; the scheme of its client must know Widget. With a StatusWriter it reads the schema of
// Widget from the cluster of config, so Install must have been called before.
func NewReconciler(c client.Client, config *rest.Config, o Options) (*Reconciler, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	r := &Reconciler{Options: o, client: c}
	switch o.Form {
	case SecondStamp, SubSecondStamp:
		return r, nil
	case OnStatusWriter, Mended:
		types, err := types(config)
		if err != nil {
			return nil, err
		}
		r.writer, err = ssa.NewStatusWriter(ssa.StatusOptions{
			Options: ssa.Options{Client: c, Types: types, FieldManager: FieldManager, Clock: o.Clock},
		})
		return r, err
	}
	return nil, fmt.Errorf("there is no form %q", o.Form)
}

// NewManager returns a manager that runs the operator against the cluster of config, in which Install must have been called
// before. Several may run in one process. The requests carry the user agent of config.
func NewManager(config *rest.Config, o Options) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return nil, fmt.Errorf("set up the manager: %w", err)
	}
	r, err := NewReconciler(mgr.GetClient(), config, o)
	if err != nil {
		return nil, err
	}
	err = ctrl.NewControllerManagedBy(mgr).
		For(&Widget{}). // without any event filter: its own write wakes it up
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Workers, SkipNameValidation: new(true)}).
		Complete(r)
	if err != nil {
		return nil, fmt.Errorf("set up the controller: %w", err)
	}
	return mgr, nil
}

// Reconcile writes the status, stamped with the present time, whether anything changed or not.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var widget Widget
	if err := r.client.Get(ctx, req.NamespacedName, &widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.work(ctx); err != nil {
		return ctrl.Result{}, err
	}
	if r.writer != nil {
		result, err := r.write(ctx, &widget)
		if err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{RequeueAfter: result.RetryAfter}, nil
	}
	widget.Status = r.status(&widget)
	return ctrl.Result{}, r.client.Status().Update(ctx, &widget)
}

func (r *Reconciler) work(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(r.Work):
		return nil
	}
}

func (r *Reconciler) status(widget *Widget) WidgetStatus {
	layout := time.RFC3339 // what metav1.Now() comes to in JSON
	if r.Form != SecondStamp {
		layout = time.RFC3339Nano
	}
	status := WidgetStatus{Size: &widget.Spec.Size, LastUpdateTime: r.Clock.Now().UTC().Format(layout)}
	if r.Form == Mended && ptr.Equal(status.Size, widget.Status.Size) {
		status.LastUpdateTime = widget.Status.LastUpdateTime
	}
	return status
}

// write is the status through the library.
func (r *Reconciler) write(ctx context.Context, widget *Widget) (ssa.Result, error) {
	status := r.status(widget)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return ssa.Result{}, fmt.Errorf("encode the status: %w", err)
	}
	desired := &unstructured.Unstructured{Object: map[string]any{"status": content}}
	desired.SetGroupVersionKind(GroupVersion.WithKind("Widget"))
	desired.SetNamespace(widget.Namespace)
	desired.SetName(widget.Name)
	return r.writer.Write(ctx, ssa.Intent{Desired: client.ApplyConfigurationFromUnstructured(desired), Live: widget})
}
