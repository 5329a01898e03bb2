package live

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hduolab/quell/controller/storm"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
)

// Options of a Source; every zero value but the clients stands for its default.
type Options struct {
	// Metadata and Dynamic are the clients of the cluster; required. They only watch, and list one object to learn the newest version.
	Metadata metadata.Interface
	Dynamic  dynamic.Interface
	// Storm are the thresholds.
	Storm storm.Options
	// Namespaces whose objects are watched. Without any it is all, and objects that belong to no namespace.
	Namespaces []string
	// FullWatches is how many objects are watched in full at a time. Default 8.
	FullWatches int
	// Clock is the time source; nil means the real one.
	Clock clock.WithTicker
}

// Source watches resources and keeps account of who writes what. It is safe for concurrent use.
type Source struct {
	options Options
	// lists are places for requests for the newest version, so that many watches do not begin in one burst.
	lists chan struct{}
	// changed is told when other resources are wanted.
	changed chan struct{}

	mutex    sync.Mutex
	detector *storm.Detector
	wanted   map[schema.GroupVersionResource]Resource
	follows  map[place]*follow
	looks    map[storm.Key]*look
	// isCrowded is whether objects wait to be looked at.
	isCrowded bool
}

const (
	defaultFullWatches = 8
	maxLists           = 8
	// sweepPeriod is how often objects are looked for whose values are worth to be seen.
	sweepPeriod = time.Second
)

// New makes a source that watches nothing yet.
func New(options Options) *Source {
	if options.FullWatches == 0 {
		options.FullWatches = defaultFullWatches
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Source{
		options: options, lists: make(chan struct{}, maxLists), changed: make(chan struct{}, 1),
		detector: storm.New(options.Storm), wanted: map[schema.GroupVersionResource]Resource{},
		follows: map[place]*follow{}, looks: map[storm.Key]*look{},
	}
}

// Run watches what Watch names until ctx is done, and returns once all watches have ended. It runs once at a time.
func (s *Source) Run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	ticker := s.options.Clock.NewTicker(sweepPeriod)
	defer ticker.Stop()
	for {
		s.adjust(ctx, &group)
		select {
		case <-ctx.Done():
			s.end()
			return
		case <-s.changed:
		case <-ticker.C():
			s.sweep(ctx, &group)
		}
	}
}

// Watch sets the resources that are watched from now on; watches of others end. It may be called before and while Run runs.
func (s *Source) Watch(resources []Resource) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	clear(s.wanted)
	for _, r := range resources {
		if r.IsNamespaced || len(s.options.Namespaces) == 0 {
			s.wanted[r.GroupVersionResource] = r
		}
	}
	select {
	case s.changed <- struct{}{}:
	default: // told already
	}
}

// namespaces in which the objects are watched; "" is all.
func (s *Source) namespaces() []string {
	if len(s.options.Namespaces) == 0 {
		return []string{""}
	}
	return s.options.Namespaces
}

// adjust begins the watches that are wanted and ends the others.
func (s *Source) adjust(ctx context.Context, group *sync.WaitGroup) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for at, f := range s.follows {
		if _, isWanted := s.wanted[at.resource]; !isWanted {
			f.cancel()
			delete(s.follows, at)
		}
	}
	for _, l := range s.looks {
		if _, isWanted := s.wanted[l.resource]; !isWanted && l.isRunning {
			l.cancel()
		}
	}
	for _, r := range s.wanted {
		for _, namespace := range s.namespaces() {
			at := place{r.GroupVersionResource, namespace}
			if s.follows[at] == nil {
				f := &follow{place: at, source: s, state: Starting, pauses: pauses}
				followed, cancel := context.WithCancel(ctx)
				f.cancel, s.follows[at] = cancel, f
				// The resource can have been watched before, in another version or for a while.
				s.detector.Interrupt(r.GroupResource(), namespace)
				group.Go(func() { f.run(followed) })
			}
		}
	}
}

// end forgets the watches, so that a later Run begins them anew.
func (s *Source) end() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, f := range s.follows {
		f.cancel()
	}
	clear(s.follows)
}

// Report gives the storms at this moment.
func (s *Source) Report() storm.Report {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.detector.Report(s.options.Clock.Now())
}

// Watches tells how the watches are, in the order of their names.
func (s *Source) Watches() []Watch {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var all []Watch
	for _, r := range slices.SortedFunc(maps.Values(s.wanted), Resource.compare) {
		w := Watch{Resource: r, State: Watching}
		for _, namespace := range s.namespaces() {
			if f := s.follows[place{r.GroupVersionResource, namespace}]; f == nil {
				w.add(Starting, nil, 0)
			} else {
				w.add(f.state, f.err, f.gaps)
			}
		}
		all = append(all, w)
	}
	return all
}
