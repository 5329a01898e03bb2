package stormwatch

import (
	"context"
	"fmt"
	"time"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/applyconfig"
	"github.com/hduolab/quell/controller/eventfilter"
	"github.com/hduolab/quell/controller/ssa"
	"github.com/hduolab/quell/controller/storm"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
)

// statusManager is the fixed field manager that owns StormWatch.status.
const statusManager = "quell-stormwatch-status"

const (
	// lookEach is how often a source is asked for what it found; lookSoon while its watches begin.
	lookEach = 2 * time.Second
	lookSoon = 500 * time.Millisecond
	// concurrent is how many StormWatches are looked at at once; one waits for discovery at most.
	concurrent = 2
)

// The paces of ssa come after the loop's own one: where others rewrite the status, and where the spec changes all the time.
var (
	contentionPace = ssa.Pace{Free: 2, Window: 10 * time.Minute, Pause: time.Minute, MaxPause: 10 * time.Minute}
	answerPace     = ssa.Pace{Free: 12, Window: time.Minute, Pause: 10 * time.Second, MaxPause: 5 * time.Minute}
)

// Options are what a Reconciler works with. All are required but Metrics and Clock.
type Options struct {
	// Client reads through the cache and writes.
	Client client.Client
	// Reader reads past the cache.
	Reader client.Reader
	// Clients watch.
	Clients Clients
	// Events records events.
	Events events.EventRecorder
	// Metrics takes the collector for as long as the controller runs; nil for no metrics.
	Metrics prometheus.Registerer
	// Clock is the time source; nil means the real one.
	Clock clock.PassiveClock
}

// Reconciler keeps a live source for each StormWatch and reports what it finds. Safe for concurrent use on different StormWatches.
type Reconciler struct {
	Options
	status  *ssa.StatusWriter
	watches *watches
	told    *told
}

// New returns a Reconciler; the scheme of its client must know StormWatch.
func New(o Options) (*Reconciler, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	status, err := ssa.NewStatusWriter(ssa.StatusOptions{Options: ssa.Options{
		Client: o.Client, Reader: o.Reader, Types: applyconfig.NewTypeConverter(o.Client.Scheme()),
		FieldManager: statusManager, Contention: contentionPace, Limit: answerPace, Clock: o.Clock,
	}})
	if err != nil {
		return nil, err
	}
	return &Reconciler{
		Options: o, status: status, told: &told{at: map[storm.Key]time.Time{}},
		watches: &watches{clients: o.Clients, clock: o.Clock, byName: map[string]*running{}},
	}, nil
}

// AddToScheme registers every kind that the controller works with.
func AddToScheme(scheme *runtime.Scheme) error { return quellv1alpha1.AddToScheme(scheme) }

// SetupWithManager makes the manager run the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := mgr.Add(r); err != nil {
		return fmt.Errorf("have the watches ended with the manager: %w", err)
	}
	own := eventfilter.OwnWrites{
		Manager: statusManager, Subresource: "status",
		Types: applyconfig.NewTypeConverter(mgr.GetScheme()), Scheme: mgr.GetScheme(),
	}
	return ctrl.NewControllerManagedBy(mgr).Named("stormwatch").
		For(&quellv1alpha1.StormWatch{}, builder.WithPredicates(own.Dropped())).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrent}).
		Complete(r)
}

// Start serves metrics until ctx is done, then ends all watches and waits for them. The manager calls it.
func (r *Reconciler) Start(ctx context.Context) error {
	if r.Metrics != nil {
		if err := r.Metrics.Register(r.watches); err != nil {
			return fmt.Errorf("register the metrics of storms: %w", err)
		}
		defer r.Metrics.Unregister(r.watches)
	}
	<-ctx.Done()
	r.watches.stopAll()
	return nil
}

// +kubebuilder:rbac:groups=quell.dev,resources=stormwatches,verbs=get;list;watch
// +kubebuilder:rbac:groups=quell.dev,resources=stormwatches/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=list;watch

// Reconcile takes one look at what the source of a StormWatch has found, and reports. A look at a cluster in good order costs no
// request. What is watched takes rights of its own: see config/stormwatch.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	seen, source, err := r.observe(ctx, req.NamespacedName)
	if err != nil || source == nil {
		return ctrl.Result{}, err
	}
	next, status, urgency := decide(source.memory, seen)
	source.memory = next
	source.setStorms(len(next.storms))
	if status == nil {
		return ctrl.Result{RequeueAfter: lookSoon}, nil
	}
	r.report(ctx, source, seen, status, urgency)
	return ctrl.Result{RequeueAfter: lookEach}, nil
}
