package stormwatch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/storm"
	"github.com/hduolab/quell/controller/storm/live"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// Clients are what the cluster is watched with.
type Clients struct {
	Discovery discovery.DiscoveryInterface
	Metadata  metadata.Interface
	Dynamic   dynamic.Interface
}

// NewClients makes the clients. No request is sent.
func NewClients(config *rest.Config, httpClient *http.Client) (Clients, error) {
	d, err1 := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	m, err2 := metadata.NewForConfigAndClient(config, httpClient)
	dyn, err3 := dynamic.NewForConfigAndClient(config, httpClient)
	if err := errors.Join(err1, err2, err3); err != nil {
		return Clients{}, fmt.Errorf("make clients to watch with: %w", err)
	}
	return Clients{d, m, dyn}, nil
}

// watches are the sources that run, one for each StormWatch. Safe for concurrent use.
type watches struct {
	clients Clients
	clock   clock.PassiveClock

	mu      sync.Mutex
	byName  map[string]*running
	stopped bool
}

// running is the source of one StormWatch, and what its loop remembers, which no two reconciles touch at a time.
type running struct {
	uid      types.UID
	settings settings
	source   *live.Source
	found    discovered
	memory   memory
	gaps     gaps
	// changed is when a CustomResourceDefinition last changed, in Unix nanoseconds.
	changed atomic.Int64
	stop    context.CancelFunc
	ended   sync.WaitGroup

	mu    sync.Mutex
	shown view
}

// settings are what a source cannot change while it runs.
type settings struct {
	storm      storm.Options
	namespaces []string
}

// defaultWrites are those per minute that make a storm where spec does not say.
const defaultWrites = 60

func settingsOf(spec *quellv1alpha1.StormWatchSpec) settings {
	s := settings{namespaces: spec.Namespaces, storm: storm.Options{Rate: defaultWrites / 60.0}}
	t := spec.Thresholds
	if t == nil {
		return s
	}
	if t.WritesPerMinute != nil {
		s.storm.Rate = float64(*t.WritesPerMinute) / 60
	}
	if t.ManagerWritesPerMinute != nil {
		s.storm.WriterRate = float64(*t.ManagerWritesPerMinute) / 60
	}
	if t.PersistSeconds != nil {
		s.storm.Persist = time.Duration(*t.PersistSeconds) * time.Second
	}
	return s
}

// follow returns the source of a StormWatch, which it starts where there is none, and starts anew where the object or what a source
// cannot change is another. It returns nil once all are stopped.
func (w *watches) follow(ctx context.Context, watch *quellv1alpha1.StormWatch, now time.Time) *running {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return nil
	}
	r, wanted := w.byName[watch.Name], settingsOf(&watch.Spec)
	if r != nil && r.uid != watch.UID {
		r.end()
		r = nil
	}
	if r == nil {
		r = &running{uid: watch.UID, memory: recall(watch, now)}
		w.byName[watch.Name] = r
	} else if reflect.DeepEqual(r.settings, wanted) {
		return r
	}
	r.end()
	r.settings = wanted
	r.begin(ctx, w.clients, w.clock)
	return r
}

// begin starts the source. It outlives the reconcile that ctx belongs to.
func (r *running) begin(ctx context.Context, clients Clients, clock clock.PassiveClock) {
	ctx, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	r.found, r.gaps = discovered{}, gaps{}
	r.source = live.New(live.Options{
		Metadata: clients.Metadata, Dynamic: clients.Dynamic, Storm: r.settings.storm, Namespaces: r.settings.namespaces,
	})
	source := r.source
	r.ended.Go(func() { source.Run(ctx) })
	r.ended.Go(func() {
		watchDefinitions(ctx, clients.Metadata, func() { r.changed.Store(clock.Now().UnixNano()) })
	})
}

// end stops the source and waits for it.
func (r *running) end() {
	if r.stop != nil {
		r.stop()
	}
	r.ended.Wait()
}

// stop ends the source of a StormWatch, if there is one.
func (w *watches) stop(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.byName[name]; r != nil {
		r.end()
		delete(w.byName, name)
	}
}

// stopAll ends all sources, and lets none begin any more.
func (w *watches) stopAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	for name, r := range w.byName {
		r.end()
		delete(w.byName, name)
	}
}

// snapshot gives the sources by the names of their StormWatches.
func (w *watches) snapshot() map[string]*running {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make(map[string]*running, len(w.byName))
	for name, r := range w.byName {
		all[name] = r
	}
	return all
}
