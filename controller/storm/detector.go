package storm

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/hduolab/quell/controller/fieldowners"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Detector finds storms in a stream of changes. It is not safe for concurrent use.
type Detector struct {
	options    Options
	objects    *Sketch[Key, state]
	managers   *Sketch[fieldowners.Owner, Meter]
	resources  *Sketch[schema.GroupResource, int64]
	operations *Sketch[fieldowners.Owner, int64]
	// perResource counts the objects that have counters.
	perResource map[schema.GroupResource]int
	hot         map[Key]*state
	all         Meter
	now         time.Time
	// past are the worst storms of objects that have cooled down, of a retrospective detector only.
	past map[Key]Finding
}

// state is what is known of an object with a counter.
type state struct {
	// version is the latest one, before the one before it.
	version, before string
	meter           Meter
	// burst is the time since the rate rose above half of Options.Rate, active that without a silence.
	burst, active span
	track         *track
	// begun is set once the object belongs to perResource.
	begun bool
}

// span is a time in which an object was written, up to its latest write, and how often.
type span struct {
	from   time.Time
	writes int64
}

// silence ends the time for which an object is written, in half-lives. It is longer than a writer at Options.WriterRate takes to
// get round as many objects as there are counters, by the defaults of all of them.
const silence = 6

// New makes a detector.
func New(options Options) *Detector {
	o := options.withDefaults()
	d := &Detector{options: o, perResource: map[schema.GroupResource]int{}, hot: map[Key]*state{}, all: Meter{Half: o.HalfLife}, past: map[Key]Finding{}}
	d.objects = NewSketch(o.Counters, o.HalfLife, d.forget)
	d.managers = NewSketch[fieldowners.Owner, Meter](o.Counters, o.HalfLife, nil)
	d.resources = NewSketch[schema.GroupResource, int64](o.Counters, o.HalfLife, nil)
	d.operations = NewSketch[fieldowners.Owner, int64](o.Counters, o.HalfLife, nil)
	return d
}

// Options are the thresholds, defaults filled in.
func (d *Detector) Options() Options { return d.options }

// Observe takes the next change. Changes of one object have to come in their order; a version that was seen already, as after
// a resync, says nothing but its values if these were not known.
func (d *Detector) Observe(c Change) {
	s := d.objects.Data(c.Key)
	if s != nil && c.ResourceVersion != "" && s.version == c.ResourceVersion && c.Type != Deleted {
		if s.track != nil {
			s.track.complete(&c)
		}
		return
	}
	if c.Time.After(d.now) {
		d.now = c.Time
	}
	if c.Type != Written {
		d.pause(s, c)
		return
	}
	s = d.objects.Add(c.Key, c.Time)
	d.divide(c.Key, s, c.Time)
	d.count(s, &c)
	d.heat(c.Key, s)
	if s.track == nil {
		d.credit(writerIn(&c), c.Time)
		return
	}
	s.track.observe(c, d.options)
	d.credit(s.track.writer, c.Time)
	if d.options.Retrospective && s.meter.Count%int64(d.options.Window) == 0 {
		d.remember(c.Key, s)
	}
}

// pause takes what is no write.
func (d *Detector) pause(s *state, c Change) {
	if s == nil {
		return
	}
	if c.Type == Listed {
		s.version = c.ResourceVersion
	}
	if s.track != nil {
		s.track.observe(c, d.options)
	}
}

// Interrupt tells that versions of a resource may have been missed, in one namespace or, with "", in all. The next version of
// each hot object is then only what the one after it is compared with, and its finding says so.
func (d *Detector) Interrupt(r schema.GroupResource, namespace string) {
	for key, s := range d.hot {
		if key.GroupResource == r && (namespace == "" || key.Namespace == namespace) {
			s.track.interrupt()
		}
	}
}

// divide begins the spans anew where the write comes after a calm or a silence. What a record shows of the ones that end is
// remembered then, unless they are too short for a verdict.
func (d *Detector) divide(key Key, s *state, now time.Time) {
	isSilent := s.meter.Count == 0 || now.Sub(s.meter.Last) >= silence*d.options.HalfLife
	isCalm := isSilent || s.meter.Count > 1 && s.meter.Rate(now) < d.options.Rate/2 // a rate takes two writes
	enough := int64(d.options.MinSamples+1) / 2
	if d.options.Retrospective && s.track != nil && (isCalm && s.burst.writes >= enough || isSilent && s.active.writes >= enough) {
		d.remember(key, s)
	}
	if isCalm {
		s.burst = span{from: now}
	}
	if isSilent {
		s.active = span{from: now}
	}
}

func (d *Detector) count(s *state, c *Change) {
	if !s.begun {
		s.begun, s.meter.Half = true, d.options.HalfLife
		d.perResource[c.GroupResource]++
	}
	s.before, s.version = s.version, c.ResourceVersion
	s.meter.Add(c.Time)
	s.burst.writes++
	s.active.writes++
	d.all.Add(c.Time)
	*d.resources.Add(c.GroupResource, c.Time)++
}

// credit counts a write to its writer, whichever API version it used.
func (d *Detector) credit(o fieldowners.Owner, when time.Time) {
	o.APIVersion = ""
	m := d.managers.Add(o, when)
	m.Half = d.options.HalfLife
	m.Add(when)
	*d.operations.Add(fieldowners.Owner{Operation: o.Operation, Subresource: o.Subresource}, when)++
}

func writerIn(c *Change) fieldowners.Owner {
	if c.Writer != nil {
		return *c.Writer
	}
	return newestOf(c.ManagedFields)
}

// heat has an object's versions kept from its second write on. Once there are Options.Hot such objects, a new one takes the place
// of one that is written less than half as often; that is tried at every power of two of its writes only.
func (d *Detector) heat(key Key, s *state) {
	n := uint64(s.meter.Count)
	if s.track != nil || n < 2 {
		return
	}
	if len(d.hot) >= d.options.Hot && (bits.OnesCount64(n) != 1 || !d.cool(s.meter.Rate(d.now)/2)) {
		return
	}
	s.track = &track{}
	d.hot[key] = s
}

// cool forgets the versions of the least written object, if it is written less often than that.
func (d *Detector) cool(rate float64) bool {
	var coldest Key
	found := false
	for key, s := range d.hot {
		if current := s.meter.Rate(d.now); current < rate {
			rate, coldest, found = current, key, true
		}
	}
	if found {
		d.dropTrack(coldest, d.hot[coldest])
	}
	return found
}

func (d *Detector) forget(key Key, s *state) {
	if d.perResource[key.GroupResource]--; d.perResource[key.GroupResource] <= 0 {
		delete(d.perResource, key.GroupResource)
	}
	if s.track != nil {
		d.dropTrack(key, s)
	}
}

func (d *Detector) dropTrack(key Key, s *state) {
	if d.options.Retrospective {
		d.remember(key, s)
	}
	s.track = nil
	delete(d.hot, key)
}

// remember keeps the storm of an object at the time when it was at its worst; of all objects no more than Options.Hot.
func (d *Detector) remember(key Key, s *state) {
	f := d.finding(key, s)
	before, found := d.past[key]
	if !f.IsStorm || found && before.Peak > f.Peak && before.IsStorm {
		return
	}
	if d.past[key] = f; len(d.past) <= d.options.Hot {
		return
	}
	mildest := key
	for k, p := range d.past {
		if p.Peak < d.past[mildest].Peak {
			mildest = k
		}
	}
	delete(d.past, mildest)
}

// Report judges all hot objects at a time, which is that of the latest change if it is earlier. It changes nothing.
func (d *Detector) Report(now time.Time) Report {
	if now.After(d.now) {
		d.now = now
	}
	r := Report{From: d.all.First, To: d.all.Last, Writes: d.all.Count, Rate: d.all.Rate(d.now)}
	r.RateError = perSecond(d.objects.Bound(), d.options.HalfLife)
	r.Findings = d.findings()
	r.Managers = rates(d, d.managers, func(m *Meter) int64 { return m.Count })
	r.Resources = rates(d, d.resources, func(n *int64) int64 { return *n })
	r.Operations = rates(d, d.operations, func(n *int64) int64 { return *n })
	return r
}

func (d *Detector) findings() []Finding {
	var found []Finding
	seen := map[Key]bool{}
	for key, s := range d.hot {
		f := d.finding(key, s)
		if p, was := d.past[key]; was && !f.IsStorm {
			f = p
		}
		seen[key] = true
		found = append(found, f)
	}
	for key, f := range d.past {
		if !seen[key] {
			found = append(found, f)
		}
	}
	retract(found)
	slices.SortFunc(found, d.compare)
	return found
}

// retract takes back that many objects which change a few times each are a rollout, where their writer storms others of the resource.
func retract(found []Finding) {
	type side struct {
		schema.GroupResource
		fieldowners.Owner
	}
	storming := map[side]bool{}
	for _, f := range found {
		if f.IsStorm && f.Verdict.isNeedless() && len(f.Writers) > 0 && f.Writers[0].Owner != unknown {
			storming[side{f.Object.GroupResource, f.Writers[0].Owner}] = true
		}
	}
	for i := range found {
		f := &found[i]
		if f.Verdict == Rollout && len(f.Writers) > 0 && storming[side{f.Object.GroupResource, f.Writers[0].Owner}] {
			f.Verdict, f.Remedy = ValuesNotSeen, ValuesNotSeen.Remedy()
			f.Evidence = []string{"its writer storms other objects of this resource; which of its values change was not looked at"}
		}
	}
}

func (d *Detector) compare(a, b Finding) int {
	storms := cmp.Compare(b2i(b.IsStorm), b2i(a.IsStorm))
	byRate := cmp.Compare(b.Rate, a.Rate)
	if d.options.Retrospective {
		byRate = cmp.Compare(b.Peak, a.Peak)
	}
	return cmp.Or(storms, byRate, cmp.Compare(b.Writes, a.Writes), cmp.Compare(a.Object.String(), b.Object.String()))
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// maxRates is how many managers, resources and operations a report names.
const maxRates = 100

// rates gives decayed weights as rates, corrected for a stream that is younger than the weights' memory.
func rates[K comparable, D any](d *Detector, s *Sketch[K, D], writes func(*D) int64) []Rate[K] {
	var found []Rate[K]
	age := max(1, d.now.Sub(d.all.First).Seconds()) / d.options.HalfLife.Seconds()
	young := 1 - math.Exp2(-age)
	old := math.Exp2(-max(0, d.now.Sub(s.last).Seconds()) / d.options.HalfLife.Seconds())
	for _, r := range s.Top(maxRates) {
		found = append(found, Rate[K]{
			r.Key, perSecond(r.Weight, d.options.HalfLife) * old / young, perSecond(r.Error, d.options.HalfLife) * old / young, writes(r.Data),
		})
	}
	return found
}

// perSecond is the rate of a steady stream whose decayed weight is this.
func perSecond(weight float64, half time.Duration) float64 { return weight * math.Ln2 / half.Seconds() }
