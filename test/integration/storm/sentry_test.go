package storm_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/hduolab/quell/controller/storm"
	"github.com/hduolab/quell/controller/storm/live"
	"github.com/hduolab/quell/test/storms"
)

// sentry looks at the reports of a Source a few times a second and remembers every storm of which one ever spoke.
type sentry struct {
	source *live.Source

	mu    sync.Mutex
	seen  map[sighting]time.Time
	known map[storm.Key]storm.Finding
}

// sighting is a storm as reported at some time.
type sighting struct {
	object  storm.Key
	verdict storm.Verdict
	// managers and fields in words.
	managers, fields string
}

func (s sighting) String() string {
	return fmt.Sprintf("%s: %s by %s, fields %s", s.object, s.verdict, s.managers, s.fields)
}

// lookEach is how exactly the time is known at which a storm is named.
const lookEach = 250 * time.Millisecond

// post starts a sentry, until the container ends, and returns once everything chosen is watched.
func post(ctx context.Context, selector live.Selector, thresholds storm.Options) *sentry {
	GinkgoHelper()
	config := cluster.Config()
	config.UserAgent = "sentry"
	d, err := discovery.NewDiscoveryClientForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	m, err := metadata.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	full, err := dynamic.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	resources, missing, err := live.Discover(ctx, d, m, selector)
	Expect(err).NotTo(HaveOccurred())
	Expect(missing).To(BeEmpty())

	s := &sentry{source: live.New(live.Options{Metadata: m, Dynamic: full, Storm: thresholds}), seen: map[sighting]time.Time{}, known: map[storm.Key]storm.Finding{}}
	s.source.Watch(resources)
	running, stop := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() { s.source.Run(running) })
	ended.Go(func() { s.keepLooking(running) })
	DeferCleanup(func() {
		stop()
		ended.Wait()
	})
	Eventually(ctx, func() []live.Watch { return s.source.Watches() }).Should(And(
		HaveLen(len(resources)), HaveEach(HaveField("State", live.Watching))))
	return s
}

func (s *sentry) keepLooking(ctx context.Context) {
	tick := time.NewTicker(lookEach)
	defer tick.Stop()
	for ctx.Err() == nil {
		s.look()
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

func (s *sentry) look() {
	report := s.source.Report()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range report.Findings {
		s.known[f.Object] = f
		if v := seenAs(f); f.IsStorm && s.seen[v].IsZero() {
			s.seen[v] = time.Now()
		}
	}
}

func seenAs(f storm.Finding) sighting {
	return sighting{f.Object, f.Verdict, strings.Join(managersOf(f), ", "), strings.Join(pathsOf(f), ", ")}
}

// storms are all that were ever reported in these namespaces, or in any where none is given.
func (s *sentry) storms(in ...string) []sighting {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []sighting
	for v := range s.seen {
		if len(in) == 0 || slices.Contains(in, v.object.Namespace) {
			found = append(found, v)
		}
	}
	slices.SortFunc(found, func(a, b sighting) int { return strings.Compare(a.String(), b.String()) })
	return found
}

// finding is the latest on an object.
func (s *sentry) finding(key storm.Key) (storm.Finding, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, found := s.known[key]
	return f, found
}

// named returns when a storm was first named right, and as what else it was seen.
func (s *sentry) named(kind storms.Storm, namespace string) (when time.Time, wrong []sighting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for v, at := range s.seen {
		switch {
		case v.object.Namespace != namespace:
		case !v.is(kind.Found):
			wrong = append(wrong, v)
		case when.IsZero() || at.Before(when):
			when = at
		}
	}
	return when, wrong
}

// is reports whether object, verdict, managers and field are those to be found.
func (s sighting) is(f storms.Found) bool {
	managers := slices.Sorted(slices.Values(f.Managers))
	return s.verdict == f.Verdict && s.object.GroupResource == f.Resource && slices.Contains(f.Objects, s.object.Name) &&
		s.managers == strings.Join(managers, ", ") && (f.Field == "" || slices.Contains(strings.Split(s.fields, ", "), f.Field))
}

// managersOf are the writers by name. One who is unknown counts only when nobody writes more: in the second in which a user
// creates an object, managedFields do not tell which of two entries is the newer one.
func managersOf(f storm.Finding) []string {
	var names []string
	for i, w := range f.Writers {
		switch {
		case w.Manager != "":
			names = append(names, w.Manager)
		case i == 0:
			names = append(names, "unknown")
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// pathsOf are the fields that move most, and with them what is said not to be stored.
func pathsOf(f storm.Finding) []string {
	var paths []string
	if len(f.Fields) > 0 {
		paths = append(paths, f.Fields[0].Path)
	}
	for _, line := range f.Evidence {
		if words, found := strings.CutPrefix(line, "not stored: "); found {
			paths = append(paths, strings.Split(words, ", ")...)
		}
	}
	return paths
}
