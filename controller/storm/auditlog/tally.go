package auditlog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hduolab/quell/controller/storm"
)

// Request is what requests have in common that are counted together.
type Request struct {
	User, Agent, Verb string
	Object            storm.Key
	Subresource       string
	// Code of the response, of rejected writes only.
	Code int
}

// meters are a sketch of keys with the rate of each.
type meters[K comparable] struct {
	*storm.Sketch[K, storm.Meter]
	half time.Duration
}

func newMeters[K comparable](o Options) meters[K] {
	return meters[K]{storm.NewSketch[K, storm.Meter](o.Counters, 0, nil), o.Storm.HalfLife}
}

func (m meters[K]) add(key K, when time.Time) {
	meter := m.Add(key, when)
	meter.Half = m.half
	meter.Add(when)
}

// tally counts requests.
type tally struct {
	options  Options
	users    meters[string]
	agents   meters[string]
	verbs    meters[string]
	objects  meters[storm.Key]
	noops    meters[Request]
	rejected meters[Request]
	reads    meters[Request]
	// versions are the resourceVersions of the objects that are written most.
	versions *storm.Sketch[storm.Key, string]
}

func newTally(o Options) tally {
	return tally{
		options: o, users: newMeters[string](o), agents: newMeters[string](o), verbs: newMeters[string](o),
		objects: newMeters[storm.Key](o), noops: newMeters[Request](o), rejected: newMeters[Request](o), reads: newMeters[Request](o),
		versions: storm.NewSketch[storm.Key, string](o.Counters, 0, nil),
	}
}

func (t *tally) add(e *event, c storm.Change, madeOne bool) {
	when := e.when()
	t.users.add(e.User.Username, when)
	t.agents.add(e.UserAgent, when)
	t.verbs.add(e.Verb, when)
	if e.ObjectRef == nil {
		return
	}
	r := Request{User: e.User.Username, Agent: e.UserAgent, Verb: e.Verb, Object: e.key(), Subresource: e.ObjectRef.Subresource}
	if madeOne {
		r.Object = c.Key
	}
	t.objects.add(r.Object, when)
	switch {
	case e.isRead():
		t.reads.add(r, when)
	case e.isWrite() && e.code() >= 400:
		r.Code = e.code()
		t.rejected.add(r, when)
	case madeOne && c.ResourceVersion != "":
		t.version(r, c)
	}
}

// version finds writes that left the resourceVersion as it was after the write before.
func (t *tally) version(r Request, c storm.Change) {
	last := t.versions.Add(c.Key, c.Time)
	if *last == c.ResourceVersion {
		t.noops.add(r, c.Time)
	}
	*last = strings.Clone(c.ResourceVersion)
}

// Count is how many requests had something in common.
type Count[K comparable] struct {
	Key K
	// Requests is at most Error too high.
	Requests, Error int64
	// Peak is the highest rate per second.
	Peak float64
	// First and Last of the requests that were counted exactly.
	First, Last time.Time
}

// maxCounts is how many of a kind a report names.
const maxCounts = 50

// counts are all of them, the most frequent first.
func (m meters[K]) counts() []Count[K] {
	var found []Count[K]
	for _, r := range m.Top(-1) {
		found = append(found, Count[K]{r.Key, int64(r.Weight), int64(r.Error), r.Data.Peak(), r.Data.First, r.Data.Last})
	}
	slices.SortFunc(found, func(a, b Count[K]) int {
		if a.Requests != b.Requests {
			return cmp.Compare(b.Requests, a.Requests)
		}
		return strings.Compare(fmt.Sprint(a.Key), fmt.Sprint(b.Key))
	})
	return found
}

// most are the counts that a report names.
func (m meters[K]) most() []Count[K] {
	all := m.counts()
	return all[:min(maxCounts, len(all))]
}

// Finding is a storm of requests that a watch cannot show.
type Finding struct {
	Verdict storm.Verdict
	Count[Request]
	Evidence, Remedy string
}

func (t *tally) findings() []Finding {
	found := t.judge(t.noops, storm.NoOpWrites, t.options.Storm.Rate, "%d writes left the object as it was")
	found = append(found, t.judge(t.rejected, storm.RejectedRetries, t.options.Storm.Rate, "%d times rejected")...)
	return append(found, t.judge(t.reads, storm.ReadFlood, 0, "%d times read")...)
}

// judge gives the requests that were repeated faster than a rate; 0 stands for the rate of the verb.
func (t *tally) judge(m meters[Request], verdict storm.Verdict, rate float64, words string) []Finding {
	var found []Finding
	for _, c := range m.counts() {
		limit := rate
		if limit == 0 {
			limit = map[string]float64{"get": t.options.GetRate, "list": t.options.ListRate}[c.Key.Verb]
		}
		sure := c.Requests - c.Error
		if c.Peak < limit || sure < int64(t.options.Storm.MinSamples) || c.Last.Sub(c.First) < t.options.Storm.MinDuration {
			continue
		}
		evidence := fmt.Sprintf(words, sure)
		if c.Key.Code != 0 {
			evidence += fmt.Sprintf(" with %d", c.Key.Code)
		}
		found = append(found, Finding{verdict, c, evidence, verdict.Remedy()})
	}
	return found
}
