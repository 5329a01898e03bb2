package stormwatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
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
	"k8s.io/utils/ptr"
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

const (
	// defaultWrites are those per minute that make a storm where spec does not say.
	defaultWrites = 60
	// defaultSpread is how many times as many writes of one manager to all objects make one, where spec does not say.
	defaultSpread = 20
)

func settingsOf(spec *quellv1alpha1.StormWatchSpec) settings {
	t := ptr.Deref(spec.Thresholds, quellv1alpha1.StormThresholds{})
	writes := float64(cmp.Or(t.WritesPerMinute, defaultWrites))
	ofManager := defaultSpread * writes
	if t.ManagerWritesPerMinute > 0 {
		ofManager = float64(t.ManagerWritesPerMinute)
	}
	persist := time.Duration(t.PersistSeconds) * time.Second // none is the detector's default
	return settings{namespaces: spec.Namespaces, storm: storm.Options{Rate: writes / 60, WriterRate: ofManager / 60, Persist: persist}}
}

// follow returns the source of a StormWatch, which it starts where there is none, and starts anew where the object or what a source
// cannot change is another. It returns nil once all are stopped. Not to be called for one StormWatch twice at a time.
func (w *watches) follow(ctx context.Context, watch *quellv1alpha1.StormWatch, now time.Time) *running {
	r, wanted := w.snapshot()[watch.Name], settingsOf(&watch.Spec)
	if r != nil && r.uid == watch.UID && reflect.DeepEqual(r.settings, wanted) {
		return r
	}
	w.stop(watch.Name)
	if r == nil || r.uid != watch.UID {
		r = &running{uid: watch.UID, memory: recall(watch, now)}
	}
	r.settings = wanted
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return nil
	}
	r.begin(ctx, w.clients, w.clock)
	w.byName[watch.Name] = r
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

// end stops the source and waits for it. The lock of watches is not to be held: metrics and the other StormWatches need it.
func (r *running) end() {
	r.stop()
	r.ended.Wait()
}

// stop ends the source of a StormWatch, if there is one.
func (w *watches) stop(name string) {
	w.mu.Lock()
	r := w.byName[name]
	delete(w.byName, name)
	w.mu.Unlock()
	if r != nil {
		r.end()
	}
}

// stopAll ends all sources, and lets none begin any more.
func (w *watches) stopAll() {
	w.mu.Lock()
	all := w.byName
	w.byName, w.stopped = nil, true
	w.mu.Unlock()
	for _, r := range all {
		r.end()
	}
}

// snapshot gives the sources by the names of their StormWatches.
func (w *watches) snapshot() map[string]*running {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.byName)
}
