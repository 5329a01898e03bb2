package stormwatch

import (
	"slices"
	"time"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/storm"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// defaultStorms is how many storms status names where spec does not say.
	defaultStorms = 10
	// maxFollowed bounds the storms that are followed at a time.
	maxFollowed = 500
	// maxNames bounds the managers, and the fields, that are named of a storm.
	maxNames = 4
	// maxManager and maxField bound their length in bytes, as the schema does.
	maxManager, maxField = 256, 512
	// farWorse is how many steps a storm must be above the last one that status names to take its place: four times the rate.
	farWorse = 2
	// verdictHold is how long another verdict must have been given to take the place of one.
	verdictHold = 3 * time.Minute
	// onAtLeast is the share of the threshold down to which a storm that was reported goes on.
	onAtLeast = 0.5
)

// ongoing is a storm that was seen and has not ended. What it says of itself is what status says, in which nothing moves by itself.
type ongoing struct {
	object  storm.Key
	verdict steady[storm.Verdict]
	// rate is a step.
	rate steady[int]
	// managers and fields are added to while the verdict stays; none is taken away.
	managers, fields []string
	// since is when it was found, active when it was last seen.
	since, active time.Time
}

// terms are those of a StormWatch's spec.
type terms struct {
	// threshold in writes per second.
	threshold float64
	// named is how many storms status names.
	named int
}

// quiet is how long a storm must not have been seen to have ended: a minute, but three times what a storm at the threshold takes
// for a write.
func (t terms) quiet() time.Duration {
	return max(time.Minute, time.Duration(3/t.threshold*float64(time.Second)))
}

// followStorms takes what is found now. Storms keep their places, of which status names the first; what is new is put before what
// is slower, without driving one that is named out of the names unless it is far worse.
func followStorms(before []ongoing, found []storm.Finding, t terms, now time.Time) []ongoing {
	byObject := make(map[storm.Key]*storm.Finding, len(found))
	for i := range found {
		byObject[found[i].Object] = &found[i]
	}
	after := make([]ongoing, 0, len(before)+1)
	for _, o := range before {
		f := byObject[o.object]
		delete(byObject, o.object)
		if o = o.look(f, t, now); now.Sub(o.active) < t.quiet() {
			after = append(after, o)
		}
	}
	for i := range found {
		f := &found[i]
		if byObject[f.Object] != nil && f.IsStorm && now.Sub(f.Last) < t.quiet() && len(after) < maxFollowed {
			after = place(after, begin(f, now), t.named)
		}
	}
	return promote(after, t.named)
}

func begin(f *storm.Finding, now time.Time) ongoing {
	return ongoing{
		object: f.Object, verdict: steady[storm.Verdict]{value: f.Verdict}, rate: steady[int]{value: stepOf(f.Rate)},
		managers: add(nil, managersOf(f), maxManager), fields: add(nil, fieldsOf(f), maxField),
		since: now.Truncate(time.Second), active: f.Last,
	}
}

// look takes what is found of the object now, nil for nothing.
func (o ongoing) look(f *storm.Finding, t terms, now time.Time) ongoing {
	if f == nil || !o.goesOn(f, t) {
		return o
	}
	if f.Last.After(o.active) {
		o.active = f.Last
	}
	o.rate = o.rate.see(stepNear(o.rate.value, f.Rate), hold, now)
	return o.judge(f, now)
}

// goesOn has a storm that was reported go on at rates at which it would not begin, and while a detector that was just started has
// not seen enough of it. An object that is written as fast for another cause than the storm's is cured.
func (o ongoing) goesOn(f *storm.Finding, t terms) bool {
	isSame := f.Verdict == o.verdict.value || f.Verdict == storm.TooLittleEvidence || f.Verdict == storm.ValuesNotSeen
	return f.IsStorm || isSame && f.Rate >= onAtLeast*t.threshold
}

// judge takes another verdict once it has lasted, or at once where the values had not been seen. Who knew the values once does not
// forget them.
func (o ongoing) judge(f *storm.Finding, now time.Time) ongoing {
	if !f.IsStorm || f.Verdict == storm.ValuesNotSeen && o.verdict.value != storm.ValuesNotSeen {
		return o
	}
	after := verdictHold
	if o.verdict.value == storm.ValuesNotSeen {
		after = 0
	}
	was := o.verdict.value
	if o.verdict = o.verdict.see(f.Verdict, after, now); o.verdict.value != was {
		o.managers, o.fields = nil, nil
	}
	if o.verdict.value == f.Verdict {
		o.managers, o.fields = add(o.managers, managersOf(f), maxManager), add(o.fields, fieldsOf(f), maxField)
	}
	return o
}

// add adds what is not there yet, up to maxNames.
func add(names, more []string, length int) []string {
	for _, name := range more {
		name = bounded(name, length)
		if len(names) < maxNames && name != "" && !slices.Contains(names, name) {
			names = append(slices.Clip(names), name)
		}
	}
	return names
}

func managersOf(f *storm.Finding) []string {
	var names []string
	for _, w := range f.Writers {
		names = append(names, w.Manager)
	}
	return names
}

func fieldsOf(f *storm.Finding) []string {
	var paths []string
	for _, field := range f.Fields {
		paths = append(paths, field.Path)
	}
	return paths
}

// place puts a new storm before the first that is slower, among those that are named if there is room or it is far worse.
func place(storms []ongoing, o ongoing, named int) []ongoing {
	n := min(named, len(storms))
	from, to := 0, n
	if n == named && o.rate.value < storms[n-1].rate.value+farWorse {
		from, to = n, len(storms)
	}
	at := to
	if i := slices.IndexFunc(storms[from:to], func(other ongoing) bool { return other.rate.value < o.rate.value }); i >= 0 {
		at = from + i
	}
	return slices.Insert(storms, at, o)
}

// promote names a storm that has become far worse than the last one that is named.
func promote(storms []ongoing, named int) []ongoing {
	if len(storms) <= named {
		return storms
	}
	worst := named
	for i := named; i < len(storms); i++ {
		if storms[i].rate.value > storms[worst].rate.value {
			worst = i
		}
	}
	o := storms[worst]
	if o.rate.value < storms[named-1].rate.value+farWorse {
		return storms
	}
	return place(slices.Delete(storms, worst, worst+1), o, named)
}

// namedOf are the storms that status names.
func namedOf(storms []ongoing, t terms) []ongoing { return storms[:min(len(storms), t.named)] }

// restore takes over the storms that a status names, as if they had been seen now.
func restore(status *quellv1alpha1.StormWatchStatus, now time.Time) []ongoing {
	var storms []ongoing
	for i := range status.Storms {
		s := &status.Storms[i]
		o := ongoing{
			object: objectOf(s), verdict: steady[storm.Verdict]{value: storm.Verdict(s.Verdict)}, rate: steady[int]{value: stepIn(s.Rate)},
			managers: s.Managers, fields: s.Fields, since: now.Truncate(time.Second), active: now,
		}
		if s.Since != nil {
			o.since = s.Since.Time
		}
		storms = append(storms, o)
	}
	return storms
}

func objectOf(s *quellv1alpha1.Storm) storm.Key {
	return storm.Key{GroupResource: schema.GroupResource{Group: s.Group, Resource: s.Resource}, Namespace: s.Namespace, Name: s.Name}
}
