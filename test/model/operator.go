package model

import (
	"context"
	"fmt"
	"net/http"
	"reflect"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Operator is the code under test. It must not read the real time, and must have one controller.
type Operator struct {
	// Cache narrows the cache as manager.Options do; nil means everything.
	Cache func() cache.Options
	// Setup is what a main does: it sets a controller up with a manager. It returns the values that hold everything that the operator
	// remembers, so that two states can be told apart.
	Setup func(ctx context.Context, mgr ctrl.Manager, clock clock.PassiveClock) (memory []any, err error)
}

// instance is one running process of an operator.
type instance struct {
	informers  *informers
	queue      *queue
	controller reconcile.Reconciler
	memory     []any
	stop       context.CancelFunc
}

// warmable is a controller that can start its sources without its workers.
type warmable interface {
	reconcile.Reconciler
	Warmup(context.Context) error
}

// fakeManager is what a controller needs of a manager to be set up.
type fakeManager struct {
	manager.Manager // nil: whatever is not modelled panics

	informers *informers
	client    *clientOf
	reader    client.Reader
	mapper    meta.RESTMapper
	added     warmable
}

func (m *fakeManager) GetScheme() *runtime.Scheme           { return m.informers.kinds.scheme }
func (m *fakeManager) GetRESTMapper() meta.RESTMapper       { return m.mapper }
func (m *fakeManager) GetFieldIndexer() client.FieldIndexer { return m.informers }
func (m *fakeManager) GetCache() cache.Cache                { return m.informers }
func (m *fakeManager) GetClient() client.Client             { return m.client }
func (m *fakeManager) GetAPIReader() client.Reader          { return m.reader }
func (m *fakeManager) GetLogger() logr.Logger               { return logr.Discard() }
func (m *fakeManager) GetHTTPClient() *http.Client          { return nil }
func (m *fakeManager) GetConfig() *rest.Config              { return nil }

func (m *fakeManager) GetControllerOptions() config.Controller {
	return config.Controller{SkipNameValidation: ptr.To(true), EnableWarmup: ptr.To(true), RecoverPanic: ptr.To(false)}
}

func (m *fakeManager) Add(r manager.Runnable) error {
	c, ok := r.(warmable)
	if !ok || m.added != nil {
		return errNotModelled(fmt.Sprintf("a second runnable, or %T", r))
	}
	m.added = c
	return nil
}

// start starts an instance whose caches have what the server has now. Its sources, event filters and handlers are the real ones of
// controller-runtime; only its workers are not started, since reconciling is a move.
func (o Operator) start(s *Server, clock clock.PassiveClock, send sender) (*instance, error) {
	options := cache.Options{}
	if o.Cache != nil {
		options = o.Cache()
	}
	informers, err := newInformers(s.kinds, options)
	if err != nil {
		return nil, err
	}
	mapper := s.kinds.mapper()
	m := &fakeManager{
		informers: informers, mapper: mapper,
		client: &clientOf{kinds: s.kinds, from: informers, send: send, mapper: mapper, cached: true},
		reader: &clientOf{kinds: s.kinds, from: direct{s}, mapper: mapper},
	}
	ctx, stop := context.WithCancel(context.Background())
	i := &instance{informers: informers, queue: newQueue(clock.Now), stop: stop}
	if i.memory, err = o.Setup(ctx, m, clock); err != nil {
		return nil, err
	}
	i.controller = m.added
	useQueue(m.added, i.queue)
	if err := m.added.Warmup(ctx); err != nil {
		return nil, err
	}
	for _, informer := range informers.watched(s) {
		if err := informer.start(s); err != nil {
			return nil, err
		}
	}
	return i, nil
}

// useQueue gives a controller its queue, which can be set in no other way for a controller that is built by the operator itself.
func useQueue(controller any, q *queue) {
	reflect.ValueOf(controller).Elem().FieldByName("NewQueue").Set(reflect.ValueOf(
		func(string, workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return q
		}))
}

// mapper knows the kinds.
func (k *Kinds) mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, r := range k.resources {
		m.AddSpecific(r.GroupVersionKind, r.GroupVersion().WithResource(r.plural), r.GroupVersion().WithResource(r.plural), meta.RESTScopeNamespace)
	}
	return m
}
