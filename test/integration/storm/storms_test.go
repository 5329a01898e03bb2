package storm_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/hduolab/quell/controller/storm"
	"github.com/hduolab/quell/controller/storm/live"
	"github.com/hduolab/quell/test/storms"
)

// groups are storms that blow at the same time. The first has more objects than are watched in full at a time.
var groups = [][]string{
	{"second-timestamp", "no-op-writes"},
	{"subsecond-timestamp", "counter", "force-fight", "reordered-list", "conflict-retry"},
	{"apply-update-fight", "flapping-phase", "no-status-subresource", "annotation", "list-flood"},
	{"delete-recreate", "volatile-text", "pruned-content", "version-flip", "growing-list"},
}

func stormSpecs() {
	var log *tail

	// A slow machine slows a storm over many objects down as well.
	slow := storm.Options{WriterRate: 2}

	BeforeAll(func() { log = newTail(0, slow) })

	It("has a group for each storm", func() {
		var all []string
		for _, s := range storms.All() {
			all = append(all, s.Name)
		}
		Expect(slices.Concat(groups...)).To(ConsistOf(all))
	})

	for _, names := range groups {
		It(fmt.Sprintf("names %v, by watches and by the audit log, and nothing else", names), func(ctx SpecContext) {
			s := post(ctx, live.Selector{All: true}, slow)
			var running []*gale
			var namespaces []string
			for _, name := range names {
				running = append(running, blow(name))
				namespaces = append(namespaces, running[len(running)-1].namespace())
			}
			for _, g := range running {
				g.expectNamed(ctx, s)
			}
			for _, g := range running {
				g.expectInAuditLog(ctx, log)
			}
			for _, v := range s.storms() {
				Expect(v.object.Namespace).To(BeElementOf(namespaces), "a storm where there is none: %s", v)
			}
		})
	}
}

// gale is a storm that blows.
type gale struct {
	storms.Storm
	// begun is the time of its first request, in nanoseconds since 1970.
	begun atomic.Int64
}

// blow starts a storm, until the spec ends.
func blow(name string) *gale {
	GinkgoHelper()
	kind, err := storms.Find(name)
	Expect(err).NotTo(HaveOccurred())
	g := &gale{Storm: kind}
	ctx, stop := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		defer GinkgoRecover()
		Expect(kind.Run(ctx, cluster.Config(), storms.Options{OnRequest: func() { g.begun.CompareAndSwap(0, time.Now().UnixNano()) }})).To(Succeed())
	})
	DeferCleanup(func() {
		stop()
		ended.Wait()
	})
	return g
}

func (g *gale) namespace() string { return "storm-" + g.Name }

// expectNamed waits until a watch has named the storm, and says how long that took. One that only the audit log shows must not
// be named.
func (g *gale) expectNamed(ctx context.Context, s *sentry) {
	GinkgoHelper()
	if g.Found.InAuditLogOnly {
		Expect(s.storms(g.namespace())).To(BeEmpty(), g.Name)
		return
	}
	var when time.Time
	Eventually(ctx, func() error {
		var wrong []sighting
		if when, wrong = s.named(g.Storm, g.namespace()); when.IsZero() {
			f, _ := s.finding(g.key())
			return fmt.Errorf("%s is not named yet; seen were %v, and of the object is known: %+v", g.Name, wrong, f)
		}
		return nil
	}).Should(Succeed())
	_, wrong := s.named(g.Storm, g.namespace())
	AddReportEntry(g.Name, fmt.Sprintf("named %s after %.1f s, other names %v", g.Found.Verdict, when.Sub(time.Unix(0, g.begun.Load())).Seconds(), wrong))
	Expect(wrong).To(BeEmpty(), g.Name)
}

// key is the first object of a storm.
func (g *gale) key() storm.Key {
	return storm.Key{GroupResource: g.Found.Resource, Namespace: g.namespace(), Name: append(slices.Clone(g.Found.Objects), "")[0]}
}

// expectInAuditLog waits until the audit log shows the storm, as what a watch shows or as what it does not.
func (g *gale) expectInAuditLog(ctx context.Context, log *tail) {
	GinkgoHelper()
	Eventually(ctx, func() error {
		report := log.read(ctx)
		if g.Found.InAuditLogOnly {
			for _, f := range report.Findings {
				if f.Verdict == g.Found.Verdict && f.Key.Agent == g.Found.Managers[0]+"/v1" && f.Key.Object == g.key() {
					return nil
				}
			}
			return fmt.Errorf("%s is not in %+v", g.Name, report.Findings)
		}
		var seen []sighting
		for _, f := range report.Writes.Findings {
			if f.Object.Namespace != g.namespace() || !f.IsStorm {
				continue
			}
			if seen = append(seen, seenAs(f)); seenAs(f).is(g.Found) {
				return nil
			}
		}
		return fmt.Errorf("%s is not among %v", g.Name, seen)
	}).WithPolling(time.Second).Should(Succeed())
}
