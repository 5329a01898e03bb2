package app

import (
	"context"
	"errors"
	"slices"
	"time"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/applyconfig"
	"github.com/hduolab/quell/controller/ssa"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayapply "sigs.k8s.io/gateway-api/applyconfiguration"
)

// The fixed field managers.
const (
	// ChildManager owns what the operator sets on children.
	ChildManager = "quell-app"
	// statusManager owns App.status.
	statusManager = "quell-app-status"
)

const (
	// stalledRetry is when an App that waits for a person is looked at again, since not everything that a person may change
	// is watched: permissions, quotas, admission policies, objects of others.
	stalledRetry = time.Minute
	// recheck is when a child is applied again of which the cluster did not keep everything; an admission policy may be gone.
	recheck = 5 * time.Minute
	// maxVersion bounds status.operatorVersion, in bytes, as its schema does.
	maxVersion = 64
	// settle is how long replica counts and images are collected before they are written without any other change.
	settle = 2 * time.Second
)

// statusLimit keeps a child that flaps from making its App's status flap as fast. A rollout has some ten transitions.
var statusLimit = ssa.Pace{Free: 30, PerChild: 5, Window: time.Minute, Pause: 2 * time.Second, MaxPause: 30 * time.Second}

// Options are what a Reconciler works with. All are required but Version, Shard and Clock.
type Options struct {
	// Client reads through the cache and writes.
	Client client.Client
	// Reader reads past the cache.
	Reader client.Reader
	// Events records events.
	Events events.EventRecorder
	// Version of the operator, for status.operatorVersion; what is longer than the schema allows is cut, "" is not stated.
	Version string
	// Shard is the part of the Apps that the Client's cache holds, as its CacheOptions make it; "" are those without LabelShard.
	Shard Shard
	// Clock is the time source; nil means the real one.
	Clock clock.PassiveClock
}

// Reconciler brings Apps to their desired state. Safe for concurrent use on different Apps.
type Reconciler struct {
	Options
	children *ssa.Applier
	status   *ssa.StatusWriter
	configs  *configs
	routes   *routes
	standing *standstills
	arrived  *arrivals
	settled  *settlements
}

// New returns a Reconciler; the scheme of its client must know App and the built-in kinds.
func New(o Options) (*Reconciler, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	o.Version = o.Version[:min(len(o.Version), maxVersion)]
	scheme := o.Client.Scheme()
	children, err := ssa.NewApplier(ssa.Options{
		Client: o.Client, Reader: o.Reader,
		Types:        childTypes{applyconfigurations.NewTypeConverter(scheme), gatewayapply.NewTypeConverter(scheme)},
		FieldManager: ChildManager, Recheck: recheck, Clock: o.Clock,
	})
	if err != nil {
		return nil, err
	}
	status, err := ssa.NewStatusWriter(ssa.StatusOptions{
		Options: ssa.Options{
			Client: o.Client, Reader: o.Reader, Types: applyconfig.NewTypeConverter(scheme),
			FieldManager: statusManager, Limit: statusLimit, Clock: o.Clock,
		},
		Details: []string{"ready", "replicas", "readyReplicas", "availableReplicas", "updatedReplicas", "images", "revision", "children"},
		Settle:  settle, Incidental: []string{"operatorVersion"},
	})
	if err != nil {
		return nil, err
	}
	configs, err := newConfigs(o)
	return &Reconciler{
		Options: o, children: children, status: status, configs: configs, routes: newRoutes(o),
		standing: newStandstills(), arrived: newArrivals(), settled: newSettlements(),
	}, err
}

// AddToScheme registers every kind that the controller works with.
func AddToScheme(scheme *runtime.Scheme) error {
	return errors.Join(clientgoscheme.AddToScheme(scheme), gatewayv1.Install(scheme), quellv1alpha1.AddToScheme(scheme))
}

// +kubebuilder:rbac:groups=quell.dev,resources=apps,verbs=get;list;watch
// +kubebuilder:rbac:groups=quell.dev,resources=apps/status,verbs=patch
// +kubebuilder:rbac:groups=quell.dev,resources=apps/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services;serviceaccounts,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses;networkpolicies,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=httproutes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch;list
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=list
// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=apps.quell.dev,verbs=list;watch

// Reconcile observes an App and its children, applies the children and reports. A converged App costs no request, and is not even
// compared while the cache holds the very objects of the last look.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	seen, err := r.observe(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	if seen.app == nil {
		r.standing.forget(req.NamespacedName)
		r.arrived.forget(req.NamespacedName)
		r.settled.note(req.NamespacedName, sighting{}, false)
		return ctrl.Result{}, nil
	}
	sight, whole := seen.sight()
	if whole && r.settled.has(req.NamespacedName, sight) {
		return ctrl.Result{}, nil
	}
	if seen, err = r.copied(seen); err != nil {
		return ctrl.Result{}, err
	}
	result, settled, err := r.bring(ctx, seen)
	r.settled.note(req.NamespacedName, sight, whole && settled)
	return result, err
}

// bring applies the children of an App and reports. settled tells that there was nothing to do, nor will there be as long as what was
// observed stays as it is.
func (r *Reconciler) bring(ctx context.Context, seen observed) (result ctrl.Result, settled bool, err error) {
	again, err := r.takeIn(ctx, seen, r.Clock.Now())
	if err != nil {
		return ctrl.Result{}, false, err
	}
	cached := seen.app
	seen.app = r.withNewestStatus(seen.app)
	children := r.applyChildren(ctx, seen)
	r.tellTaken(seen.app, children)
	seen.now = r.Clock.Now()
	seen.version, seen.stuck = r.Version, r.whyStuck(ctx, seen.app, children)

	desired := desiredStatus(seen, children)
	written, err := r.status.Write(ctx, ssa.Intent{
		Desired: desired, Live: seen.app, Inputs: ssa.Version(objects(children)...), Children: len(desired.Status.Children),
	})
	if err == nil && written.Wrote() {
		r.tell(seen.app, desired.Status)
	}
	r.tellStatus(seen.app, written)
	logDecisions(ctx, children, written)
	result, err = next(children, written, err, seen.stuck.again, again)
	return result, err == nil && seen.app == cached && !r.arrived.has(cached) && isSettled(children, written, result), err
}

func objects(children []applied) []client.Object {
	var objects []client.Object
	for _, c := range children {
		objects = append(objects, c.current())
	}
	return objects
}

func logDecisions(ctx context.Context, children []applied, status ssa.Result) {
	log := logf.FromContext(ctx)
	for _, c := range children {
		if c.err != nil {
			log.Error(c.err, "child not applied", "kind", c.kind)
		} else if c.Outcome != ssa.Unchanged && c.Outcome != "" {
			log.V(1).Info("child", "kind", c.kind, "result", c.Result.String())
		}
	}
	if status.Began && (status.Outcome == ssa.Contended || status.Outcome == ssa.SelfChurn || status.Outcome == ssa.DoesNotStick) {
		log.Info("status cannot be kept up", "result", status.String())
	} else if status.Outcome != ssa.Unchanged {
		log.V(1).Info("status", "result", status.String())
	}
}

// next says when to look again: what a person has to change is not retried hotly, what was held back is written when its
// pause ends, everything else that failed goes through the work queue's own back-off.
func next(children []applied, status ssa.Result, statusErr error, lookAgain ...time.Duration) (ctrl.Result, error) {
	retry := []error{retryable(statusErr)}
	waits := append(slices.Clone(lookAgain), status.RetryAfter, stalledWait(statusErr))
	for _, c := range children {
		retry = append(retry, retryable(c.err))
		waits = append(waits, c.RetryAfter, stalledWait(c.err))
		if c.foreign != "" || c.leaving || c.stalled != nil || c.Outcome == ssa.Conflicted {
			waits = append(waits, stalledRetry)
		}
		if c.Outcome == ssa.Gone || c.Outcome == ssa.Replaced || c.isOutdated() || c.Outcome == ssa.Conflicted && c.live == nil {
			waits = append(waits, time.Second)
		}
	}
	if err := errors.Join(retry...); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: soonest(waits)}, nil
}

func retryable(err error) error {
	if stalledWait(err) > 0 {
		return nil
	}
	return err
}

func stalledWait(err error) time.Duration {
	if ssa.IsTerminal(err) || apierrors.IsForbidden(err) {
		return stalledRetry
	}
	return 0
}

// soonest is the shortest positive wait, zero when there is none.
func soonest(waits []time.Duration) time.Duration {
	var soonest time.Duration
	for _, w := range waits {
		if w > 0 && (soonest == 0 || w < soonest) {
			soonest = w
		}
	}
	return soonest
}
