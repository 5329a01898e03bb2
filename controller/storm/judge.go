package storm

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/hduolab/quell/controller/fieldowners"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// judgement is a verdict that a window of samples bears out.
type judgement struct {
	verdict Verdict
	// support is the number of samples that show it.
	support  int
	evidence string
	// by are the managers whose samples alone count; none stands for all.
	by []string
}

func newJudgement(v Verdict, support int, evidence string) judgement {
	return judgement{verdict: v, support: support, evidence: evidence}
}

// isBy reports whether a writer is one of those.
func (j *judgement) isBy(o fieldowners.Owner) bool { return slices.Contains(j.by, managerName(o)) }

// samples is how many of them count.
func (j *judgement) samples(e *evidence) int {
	if j.by == nil {
		return len(e.samples)
	}
	return e.count(func(s *sample) bool { return j.isBy(s.writer) })
}

// pathStat is what the samples of a window did to one field.
type pathStat struct {
	name    string
	path    fieldpath.Path
	count   int
	steps   map[step]int
	writers []fieldowners.Owner
	// values by digest, and in the order in which they appeared.
	values map[uint64]bool
	shown  []string
	// returns is how often a value came back, turns how often the writer was another one than the time before.
	returns, turns int
	// recent are the values to which a return counts, those of the status since the generation rose last: a status that goes
	// back because the spec did is in order.
	recent     map[uint64]bool
	generation int
}

// evidence is a window of samples, counted.
type evidence struct {
	options Options
	track   *track
	samples []sample
	paths   []*pathStat
}

func gather(t *track, samples []sample, o Options) *evidence {
	e := &evidence{options: o, track: t, samples: samples}
	byName := map[string]*pathStat{}
	generation := 0
	for i := range e.samples {
		generation += b2i(e.samples[i].risen)
		for _, c := range e.samples[i].changes {
			p := byName[c.name]
			if p == nil {
				p = &pathStat{name: c.name, path: c.path, steps: map[step]int{}, values: map[uint64]bool{}, recent: map[uint64]bool{}}
				byName[c.name] = p
				e.paths = append(e.paths, p)
			}
			p.add(c, e.samples[i].writer, generation)
		}
	}
	slices.SortStableFunc(e.paths, func(a, b *pathStat) int {
		return cmp.Or(cmp.Compare(b.count, a.count), strings.Compare(a.name, b.name))
	})
	return e
}

// maxShown is how many values of a field are kept to be shown.
const maxShown = 4

func (p *pathStat) add(c fieldChange, writer fieldowners.Owner, generation int) {
	if generation > p.generation && strings.HasPrefix(p.name, ".status.") {
		clear(p.recent)
	}
	if p.generation = generation; p.recent[c.after.digest] {
		p.returns++
	}
	if n := len(p.writers); n > 0 && p.writers[n-1].Manager != writer.Manager {
		p.turns++
	}
	for _, v := range []shown{c.before, c.after} {
		if !p.values[v.digest] && len(p.shown) < maxShown {
			p.shown = append(p.shown, v.text)
		}
		p.values[v.digest], p.recent[v.digest] = true, true
	}
	p.count++
	p.steps[c.step]++
	p.writers = append(p.writers, writer)
}

func (p *pathStat) managers() []string {
	var names []string
	for _, w := range p.writers {
		if name := managerName(w); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func managerName(o fieldowners.Owner) string {
	return fieldowners.Join(slices.DeleteFunc([]fieldowners.Owner{o}, isUnknown))
}

func isUnknown(o fieldowners.Owner) bool { return o.Manager == "" }

// isEnough reports whether a number of samples bears a verdict out.
func (e *evidence) isEnough(n int) bool { return float64(n) >= e.options.Share*float64(len(e.samples)) }

// all counts the samples that changed something and whose every change passes; those with more changes than were kept do not.
func (e *evidence) all(passes func(fieldChange) bool) int {
	return e.count(func(s *sample) bool {
		return len(s.changes) > 0 && s.more == 0 && !slices.ContainsFunc(s.changes, func(c fieldChange) bool { return !passes(c) })
	})
}

func (e *evidence) count(passes func(*sample) bool) int {
	n := 0
	for i := range e.samples {
		if passes(&e.samples[i]) {
			n++
		}
	}
	return n
}

func seesValues(s *sample) bool { return s.seesValues }

// checks from the most to the least telling: the first that holds is the verdict, the others are told besides.
var checks = []func(*evidence) (judgement, bool){
	recreation, versionFlip, orderFlip, fight, growth, metadataChurn, specChurn, flapping, timestamps, volatileText, counters, nothing,
}

// judge gives the verdicts, of which there is always one, and what they stand on: the samples with values where there are enough
// of these, else all.
func judge(t *track, o Options) (*evidence, []judgement) {
	valued := gather(t, t.valued(), o)
	if len(valued.samples) >= o.MinSamples {
		return valued, valued.judge()
	}
	if found := valued.early(); found != nil {
		return valued, found
	}
	all := gather(t, t.samples, o)
	if len(all.samples) >= o.MinSamples {
		return all, all.judge()
	}
	if found := all.early(); found != nil {
		return all, found
	}
	words := fmt.Sprintf("%d of the %d versions that a verdict takes", len(all.samples), o.MinSamples)
	return all, []judgement{newJudgement(TooLittleEvidence, len(all.samples), words)}
}

// early gives verdicts before there are Options.MinSamples, where every sample bears out one that is never progress.
func (e *evidence) early() []judgement {
	if len(e.samples)*2 < e.options.MinSamples {
		return nil
	}
	found := e.holding()
	for _, j := range found {
		if j.verdict.isTelling() && (j.support == len(e.samples) || j.verdict == DeleteRecreate) {
			return found
		}
	}
	return nil
}

func (e *evidence) holding() []judgement {
	var found []judgement
	for _, check := range checks {
		if j, holds := check(e); holds {
			found = append(found, j)
		}
	}
	return found
}

func (e *evidence) judge() []judgement {
	if found := e.holding(); len(found) > 0 {
		return found
	}
	if blind := e.count(func(s *sample) bool { return !s.seesValues }); e.isEnough(blind) {
		return []judgement{newJudgement(ValuesNotSeen, blind, "the owners of the fields stay as they are; the values were not seen")}
	}
	return []judgement{newJudgement(RealChanges, len(e.samples), "values change without a pattern")}
}

func recreation(e *evidence) (judgement, bool) {
	n := e.count(func(s *sample) bool { return s.isRecreation })
	// Between a creation and a deletion there may be a few other writes, such as those to the status.
	return newJudgement(DeleteRecreate, n, fmt.Sprintf("%d times deleted and created again", n)), n >= 3 && n*5 >= len(e.samples)
}

func versionFlip(e *evidence) (judgement, bool) {
	flips, versions := 0, []string{}
	last := map[fieldowners.Owner]string{}
	for i := range e.samples {
		w := e.samples[i].writer
		version := w.APIVersion
		if w.APIVersion = ""; version == "" {
			continue
		}
		if before := last[w]; before != "" && before != version {
			flips++
		}
		if last[w] = version; !slices.Contains(versions, version) {
			versions = append(versions, version)
		}
	}
	return newJudgement(APIVersionFlip, flips+b2i(flips > 0), "written in turn as "+strings.Join(versions, " and ")), e.isEnough(flips+1) && flips > 0
}

func orderFlip(e *evidence) (judgement, bool) {
	for _, p := range e.paths {
		if n := p.steps[stepOrder]; e.isEnough(n) {
			return newJudgement(OrderFlip, n, p.name+" has the same items in another order, written by "+strings.Join(p.managers(), " and ")), true
		}
	}
	return judgement{}, false
}

// fight looks for a field whose writers take turns. Where one of them only removes it, that one is unknown.
func fight(e *evidence) (judgement, bool) {
	for _, p := range e.paths {
		names := p.managers()
		if j := (judgement{Fight, p.turns + 1, "", names}); len(names) > 1 && e.isFight(p, &j) {
			words := fmt.Sprintf("%s goes to and fro between %s: %s", p.name, strings.Join(names, " and "), strings.Join(p.shown, ", "))
			if slices.ContainsFunc(p.writers, isUnknown) {
				words += "; the unknown writer, who removes it, can be the same manager where both write within one second"
			}
			j.evidence = words
			return j, true
		}
	}
	return judgement{}, false
}

// isFight reports whether a field is what its writers write for, and whether they take turns. Each take may be followed by a few
// writes of others, such as a controller's to the status, as long as the takes are enough by themselves.
func (e *evidence) isFight(p *pathStat, j *judgement) bool {
	share := e.options.Share
	isOften := p.count*2 >= e.options.MinSamples && p.count*5 >= len(e.samples)
	return isOften && float64(p.count) >= share*float64(j.samples(e)) && float64(p.turns+1) >= share*float64(p.count)
}

func growth(e *evidence) (judgement, bool) {
	grown := e.count(func(s *sample) bool { return has(s, stepLonger) || has(s, stepAdded) && !has(s, stepRemoved) })
	lost := e.count(func(s *sample) bool { return has(s, stepRemoved) })
	if !e.isEnough(grown) || lost*10 > grown {
		return judgement{}, false
	}
	i := slices.IndexFunc(e.paths, func(p *pathStat) bool { return p.steps[stepLonger]+p.steps[stepAdded] > 0 })
	name := fieldowners.FormatPath(e.paths[i].path)
	if e.paths[i].steps[stepLonger] == 0 { // each item has a path of its own
		name = fieldowners.FormatPath(e.paths[i].path[:len(e.paths[i].path)-1])
	}
	return newJudgement(UnboundedGrowth, grown, name+" only ever grows"), true
}

func has(s *sample, how step) bool {
	return slices.ContainsFunc(s.changes, func(c fieldChange) bool { return c.step == how })
}

func metadataChurn(e *evidence) (judgement, bool) {
	n := e.count(seesValues)
	if n = min(n, e.all(func(c fieldChange) bool { return strings.HasPrefix(c.name, ".metadata.") })); n == 0 {
		return judgement{}, false
	}
	return newJudgement(MetadataChurn, n, "only "+e.names()+" changes"), e.isEnough(n)
}

func specChurn(e *evidence) (judgement, bool) {
	n := e.count(func(s *sample) bool { return s.risen })
	return newJudgement(SpecChurn, n, fmt.Sprintf("the generation rises with %d of %d writes", n, len(e.samples))), n > 0 && e.isEnough(n)
}

func flapping(e *evidence) (judgement, bool) {
	for _, p := range e.paths {
		if e.isEnough(p.count) && float64(p.returns+1) >= e.options.Share*float64(p.count) && len(p.values) <= e.options.FewValues {
			return newJudgement(Flapping, min(p.count, p.returns+1), p.name+" returns to earlier values: "+strings.Join(p.shown, ", ")), true
		}
	}
	return judgement{}, false
}

func timestamps(e *evidence) (judgement, bool) {
	n := e.all(func(c fieldChange) bool { return c.step == stepTime })
	return newJudgement(TimestampChurn, n, fmt.Sprintf("%d %% of the writes change only %s", percent(n, len(e.samples)), e.names())), n > 0 && e.isEnough(n)
}

func volatileText(e *evidence) (judgement, bool) {
	n := e.all(func(c fieldChange) bool { return c.step == stepText || c.step == stepTime })
	for _, p := range e.paths {
		if e.isEnough(n) && e.isEnough(p.steps[stepText]) {
			return newJudgement(VolatileText, n, p.name+" differs in ids, numbers or durations only: "+strings.Join(p.shown, ", ")), true
		}
	}
	return judgement{}, false
}

func counters(e *evidence) (judgement, bool) {
	n := e.all(func(c fieldChange) bool { return c.step == stepUp || c.step == stepTime })
	for _, p := range e.paths {
		if e.isEnough(n) && e.isEnough(p.steps[stepUp]) {
			return newJudgement(CounterChurn, n, p.name+" only rises: "+strings.Join(p.shown, ", ")), true
		}
	}
	return judgement{}, false
}

// nothing looks for versions that do not differ, and why not.
func nothing(e *evidence) (judgement, bool) {
	n := e.count(func(s *sample) bool { return s.seesValues && len(s.changes) == 0 && !s.isRecreation })
	if n == 0 || !e.isEnough(n) {
		return judgement{}, false
	}
	if missing := e.missing(); len(missing) > 0 {
		return newJudgement(DoesNotStick, n, "not stored: "+strings.Join(missing, ", ")), true
	}
	return newJudgement(ManagedFieldsOnly, n, "nothing changes but resourceVersion and managedFields"), true
}

// missing are fields that the last writer who is known owns and the object, as its values were seen last, does not have.
func (e *evidence) missing() []string {
	known := slices.DeleteFunc(slices.Clone(e.samples), func(s sample) bool { return isUnknown(s.writer) })
	if e.track.whole == nil || len(known) == 0 {
		return nil
	}
	entries := fieldowners.Parse(e.track.whole.ManagedFields)
	entry, found := fieldowners.Find(entries, known[len(known)-1].writer)
	if !found {
		return nil
	}
	var names []string
	absent := fieldowners.Attribute(e.track.whole.Object, entries, nil).Absent(entry)
	absent.Iterate(func(p fieldpath.Path) {
		if len(names) < maxShown {
			names = append(names, fieldowners.FormatPath(p))
		}
	})
	return names
}

// whyUnknown says why managedFields do not tell who writes, and who could be meant.
func (e *evidence) whyUnknown() string {
	if len(e.track.entries) == 0 && e.track.last != nil {
		return "the object has no managedFields: they were removed, or it was created without content; an audit log tells the writer"
	}
	if len(e.paths) > 0 {
		if owners := nearestOwners(e.track.entries, e.paths[0].path); len(owners) > 1 {
			return "one of the owners of " + e.paths[0].name + " writes, within one second of each other: " + fieldowners.Join(owners)
		}
	}
	return "managedFields do not tell the writer, who removes fields or is part of admission; an audit log does"
}

// names are the fields that change most.
func (e *evidence) names() string {
	var names []string
	for _, p := range e.paths[:min(len(e.paths), maxShown)] {
		names = append(names, p.name)
	}
	return strings.Join(names, ", ")
}

func percent(part, whole int) int { return part * 100 / max(1, whole) }

// confidence is the share of writes that a verdict is sure to hold for, having held for some of a number of samples: the
// lower end of Wilson's interval at 95 %.
func confidence(held, samples int) float64 {
	if samples == 0 {
		return 0
	}
	const z = 1.96
	n, p := float64(samples), float64(held)/float64(samples)
	lower := (p + z*z/(2*n) - z*math.Sqrt(p*(1-p)/n+z*z/(4*n*n))) / (1 + z*z/n)
	return math.Round(max(0, lower)*100) / 100
}
