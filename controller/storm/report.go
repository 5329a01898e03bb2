package storm

import (
	"cmp"
	"slices"
	"time"

	"github.com/hduolab/quell/controller/fieldowners"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Report is what a Detector found.
type Report struct {
	// From the first to the last change.
	From, To time.Time
	// Writes are all versions that were counted.
	Writes int64
	// Rate of all writes per second, and by how much that of one object can be too high at most.
	Rate, RateError float64
	// Findings on the hot objects: storms first, then by rate.
	Findings []Finding
	// Managers, Resources and Operations by rate. A manager is without an API version; an operation is one with neither, and
	// without a manager. Writers of objects that are not hot are known by the newest entry of managedFields.
	Managers   []Rate[fieldowners.Owner]
	Resources  []Rate[schema.GroupResource]
	Operations []Rate[fieldowners.Owner]
}

// Rate is how often something was written.
type Rate[K comparable] struct {
	Key K
	// PerSecond is at most Error too high.
	PerSecond, Error float64
	// Writes are all that were counted since the key got its counter, which of Options.Counters at a time is always.
	Writes int64
}

// Finding is what is known of one object.
type Finding struct {
	Object Key
	// Verdict, and Also the further ones that hold.
	Verdict Verdict
	Also    []Verdict
	// IsStorm is whether it is worth waking somebody up. With a Confidence below 0.5 it takes Options.Persist for that, whatever the
	// verdict; DeleteRecreate is sure without.
	IsStorm bool
	// Rate is that at the time of the report, Peak the highest, both per second; Writes are counted from First to Last.
	Rate, Peak  float64
	Writes      int64
	First, Last time.Time
	// Writers by the number of their writes among the samples; of a Fight first those who take the field from each other.
	Writers []Writer
	// Fields that change, by how often.
	Fields []Field
	// Evidence for the verdict in a line each, and Remedy, the usual cure.
	Evidence []string
	Remedy   string
	// Samples is how many versions the verdict stands on, Valued of how many the values were seen, and Confidence the share of
	// writes for which it is sure to hold, from 0 to 1: the lower end of a 95 % interval. A Fight is one of the writes of those who
	// take part in it.
	Samples, Valued int
	Confidence      float64
}

// Writer is who writes an object.
type Writer struct {
	// Owner is empty for the writes whose writer is unknown.
	fieldowners.Owner
	// Writes of the samples, and of these Likely the ones whose writer was inferred from who owns the fields.
	Writes, Likely int
}

// Field is one that changes.
type Field struct {
	// Path as fieldowners.FormatPath writes it.
	Path string
	// Changes among the samples.
	Changes int
	// Values that it had, shortened; of a Secret they are hidden.
	Values []string
	// Managers who wrote it, in words.
	Managers []string
}

// maxFields is how many fields of an object a report names.
const maxFields = 5

// finding judges one object now.
func (d *Detector) finding(key Key, s *state) Finding {
	e, verdicts := judge(s.track, d.options)
	f := Finding{
		Object: key, Verdict: verdicts[0].verdict, Rate: s.meter.Rate(d.now), Peak: s.meter.Peak(), Writes: s.meter.Count,
		First: s.meter.First, Last: s.meter.Last, Samples: len(e.samples), Valued: e.count(seesValues), Evidence: []string{verdicts[0].evidence},
		Confidence: confidence(verdicts[0].support, verdicts[0].samples(e)), Writers: writers(e.samples), Fields: fields(e.paths),
	}
	for _, j := range verdicts[1:] {
		f.Also = append(f.Also, j.verdict)
		f.Evidence = append(f.Evidence, j.evidence)
	}
	if s.track.gaps > 0 {
		f.Evidence = append(f.Evidence, "the watch was interrupted: any number of writes may have been missed")
	}
	slices.SortStableFunc(f.Writers, func(a, b Writer) int {
		return cmp.Compare(b2i(verdicts[0].isBy(b.Owner)), b2i(verdicts[0].isBy(a.Owner)))
	})
	d.excuse(&f, s)
	if len(f.Writers) > 0 && f.Writers[0].Owner == unknown {
		f.Evidence = append(f.Evidence, e.whyUnknown())
	}
	f.IsStorm = d.isStorm(&f, s)
	f.Remedy = f.Verdict.Remedy()
	return f
}

// excuse finds traffic that is in order.
func (d *Detector) excuse(f *Finding, s *state) {
	switch {
	case d.options.isKnown(f.Object.GroupResource) || isLeaderRecord(f.Fields):
		f.Verdict, f.Also = Heartbeat, nil
		f.Evidence = append([]string{"leases, events and leader records are written all the time"}, f.Evidence...)
	case !f.Verdict.isNeedless() && f.Verdict != TooLittleEvidence && d.siblings(f.Object.GroupResource) >= fewSiblings && s.burst.writes <= rolloutWrites:
		f.Verdict = Rollout
		f.Evidence = append([]string{"many objects of this resource change a few times each"}, f.Evidence...)
	}
}

const (
	// fewSiblings is from how many objects of one resource on their changes can be a rollout.
	fewSiblings = 10
	// rolloutWrites is up to how many writes of an object in one burst can be part of one.
	rolloutWrites = 100
	leaderRecord  = `.metadata.annotations["control-plane.alpha.kubernetes.io/leader"]`
)

func isLeaderRecord(fields []Field) bool { return len(fields) == 1 && fields[0].Path == leaderRecord }

// siblings counts the objects of a resource that have counters.
func (d *Detector) siblings(r schema.GroupResource) int { return d.perResource[r] }

// sureConfidence is for how many of the writes a verdict must be sure to hold before it wakes anybody up. A rollout whose counts
// happen to come back a few times does not reach it; a verdict that does not is no better than RealChanges, and no worse.
const sureConfidence = 0.5

func (d *Detector) isStorm(f *Finding, s *state) bool {
	rate := f.Rate
	if d.options.Retrospective {
		rate = f.Peak
	}
	burst, active := f.Last.Sub(s.burst.from), f.Last.Sub(s.active.from)
	persists := rate >= d.options.Rate && burst >= d.options.Persist
	switch f.Verdict {
	case Rollout, Heartbeat, TooLittleEvidence:
		return false
	case ValuesNotSeen, RealChanges:
		// A record does not go on, so nobody will look closer: more writes than a rollout makes have to do.
		if d.options.Retrospective && f.Verdict == ValuesNotSeen && s.burst.writes > rolloutWrites && burst >= d.options.MinDuration {
			return rate >= d.options.Rate
		}
		return persists
	}
	// Recreations are told by themselves, however many other writes there are between them.
	if f.Confidence < sureConfidence && f.Verdict != DeleteRecreate {
		return persists
	}
	return active >= d.options.MinDuration && (rate >= d.options.Rate || len(f.Writers) > 0 && d.isBusy(f.Writers[0].Owner))
}

// isBusy reports whether a writer makes a storm out of many objects.
func (d *Detector) isBusy(o fieldowners.Owner) bool { return d.writerRate(o) >= d.options.WriterRate }

// writerRate is that of all writes of a known writer.
func (d *Detector) writerRate(o fieldowners.Owner) float64 {
	o.APIVersion = ""
	m := d.managers.Data(o)
	if m == nil || o == unknown {
		return 0
	}
	if d.options.Retrospective {
		return m.Peak()
	}
	return m.Rate(d.now)
}

func writers(samples []sample) []Writer {
	counts := map[fieldowners.Owner]*Writer{}
	for i := range samples {
		owner := samples[i].writer
		if counts[owner] == nil {
			counts[owner] = &Writer{Owner: owner}
		}
		counts[owner].Writes++
		if samples[i].isLikely {
			counts[owner].Likely++
		}
	}
	sorted := make([]Writer, 0, len(counts))
	for _, w := range counts {
		sorted = append(sorted, *w)
	}
	slices.SortFunc(sorted, func(a, b Writer) int {
		return cmp.Or(cmp.Compare(b.Writes, a.Writes), cmp.Compare(a.String(), b.String()), cmp.Compare(a.APIVersion, b.APIVersion))
	})
	return sorted
}

func fields(paths []*pathStat) []Field {
	found := make([]Field, 0, maxFields)
	for _, p := range paths[:min(len(paths), maxFields)] {
		found = append(found, Field{Path: p.name, Changes: p.count, Values: p.shown, Managers: p.managers()})
	}
	return found
}
