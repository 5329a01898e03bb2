package differential_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/hduolab/quell/controller/ssa"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// writer is the code under test for one side: an Applier or a StatusWriter.
type writer struct {
	write         func(ctx context.Context, in ssa.Intent) (ssa.Result, error)
	schemaChanged func()
}

// boundless lets everything through: what is held back would prove nothing.
var boundless = ssa.Pace{Free: 1000, Window: time.Second, Pause: time.Millisecond, MaxPause: time.Millisecond}

func (k *kind) newWriter(subresource string) (*writer, error) {
	o := ssa.Options{
		Client: subject, Reader: subject, Types: k.types, FieldManager: me, Subresource: subresource,
		Contention: boundless, Churn: boundless, Clock: clock, Remember: 1 << 10,
	}
	if subresource == "status" {
		w, err := ssa.NewStatusWriter(ssa.StatusOptions{Options: o})
		if err != nil {
			return nil, err
		}
		return &writer{w.Write, w.SchemaChanged}, nil
	}
	a, err := ssa.NewApplier(o)
	if err != nil {
		return nil, err
	}
	return &writer{a.Apply, a.SchemaChanged}, nil
}

// keep gives the kind the writers that live on.
func (k *kind) keep() error {
	k.kept = map[string]*writer{}
	for _, sub := range []string{"", "status"} {
		w, err := k.newWriter(sub)
		if err != nil {
			return err
		}
		k.kept[sub] = w
	}
	return nil
}

// call is one call of the code under test.
type call struct {
	*side
	*writer
	// restarted means that the writer had no memory before this call.
	restarted bool
	live      *unstructured.Unstructured
	result    ssa.Result
	err       error
	// sent counts the writes that were seen on the wire.
	sent int
}

func (c *call) inWords() string {
	return fmt.Sprintf("restarted=%t on %q at %s: %v, sent %d, conflicts %v, yielded %v, %v", c.restarted, c.subresource, c.version, c.result,
		c.sent, c.result.Conflicts, c.result.Yielded, c.err)
}

// apply calls the code under test with the object as it was read: the writer that was there before, or one without memory.
func (s *side) apply(ctx context.Context, live *unstructured.Unstructured, w *writer) (*call, error) {
	c := &call{side: s, live: live, writer: w, restarted: s.r.IntN(2) == 0}
	if c.restarted {
		var err error
		if c.writer, err = s.newWriter(s.subresource); err != nil {
			return nil, err
		}
	}
	return c, c.do(ctx)
}

func (c *call) do(ctx context.Context) error {
	s := c.side
	in := ssa.Intent{Desired: config(s.document(s.version, s.desired)), Rules: s.rules, Exact: c.live != nil && s.r.IntN(12) == 0}
	if c.live != nil {
		in.Live = s.cached(c.live)
	}
	before := wire.writes(s.name)
	c.result, c.err = c.write(ctx, in)
	c.sent = wire.writes(s.name) - before
	s.wrote = time.Now()
	s.note("ours %s", c.inWords())
	return nil
}

// cached is an object as a cache holds it, typed where the kind has a type.
func (s *side) cached(u *unstructured.Unstructured) client.Object {
	if s.live == nil || s.r.IntN(4) == 0 {
		return u
	}
	o := s.live()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o); err != nil {
		panic(err)
	}
	o.GetObjectKind().SetGroupVersionKind(s.WithVersion(""))
	return o
}

// converge lets us apply what we want now, up to three times, so that the last call has nothing to do. It returns what is to be
// verified.
func (s *side) converge(ctx context.Context) (*check, error) {
	s.desired = s.varied(s.desired)
	if len(s.versions) > 1 && s.r.IntN(20) == 0 {
		s.version = s.anyVersion()
	}
	if err := s.applyStale(ctx); err != nil {
		return nil, err
	}
	w, before := s.kept[s.subresource], (*call)(nil)
	for range 3 {
		live, err := s.fetch(ctx, s.version)
		if err != nil || live == nil && s.subresource != "" {
			return nil, err
		}
		c, err := s.apply(ctx, live, w)
		if err != nil {
			return nil, err
		}
		if k, err := s.judge(ctx, c, before); err != nil || k != nil || !c.result.Sent {
			return k, err
		}
		before, w = c, c.writer
	}
	return nil, nil
}

// applyStale now and then applies on the word of a cache that is behind.
func (s *side) applyStale(ctx context.Context) error {
	live, err := s.fetch(ctx, s.version)
	if err != nil || live == nil {
		return err
	}
	if len(s.seen) > 0 && s.r.IntN(10) == 0 {
		old := s.seen[s.r.IntN(len(s.seen))].(*unstructured.Unstructured)
		if old.GetAPIVersion() == live.GetAPIVersion() {
			c, err := s.apply(ctx, old, s.kept[s.subresource])
			if err != nil {
				return err
			}
			s.tallyCall(c)
			if c.result.Outcome == ssa.NoOp {
				tally.count("no-op requests", "the cache was behind")
			}
		}
	}
	s.seen = append(s.seen, live)
	if len(s.seen) > 4 {
		s.seen = s.seen[1:]
	}
	return nil
}

func (s *side) tallyCall(c *call) {
	outcome := string(c.result.Outcome)
	if c.err != nil {
		outcome = "Error"
	}
	tally.count("our calls", outcome)
	tally.add("requests sent by us", "writes on the wire", c.sent)
}

// judge compares what a call did with what it says, and returns what is to be verified later.
func (s *side) judge(ctx context.Context, c, before *call) (*check, error) {
	s.tallyCall(c)
	r := c.result
	switch {
	case c.err != nil:
	case !r.Sent && !r.Migrated && c.sent > 0 && r.Outcome == ssa.Unchanged && len(s.rules.Default) == 0:
		report(s, c.live, "a write was sent by a call that says Unchanged: %s", c.inWords())
	case r.Sent && before != nil:
		return nil, s.judgeRepetition(ctx, c, before)
	case r.Sent:
		s.judgeRequest(c)
	}
	if r.Sent || r.Outcome == ssa.Stale {
		return nil, nil
	}
	return newCheck(c), nil
}

// keys are the keys of list items in paths.
var keys = regexp.MustCompile(`\[[^]]*\]`)

// judgeRequest counts requests that changed nothing.
func (s *side) judgeRequest(c *call) {
	r := c.result
	isNoOp := c.live != nil && !r.Migrated && r.Object.GetResourceVersion() == c.live.GetResourceVersion()
	if r.Outcome == ssa.DoesNotStick {
		tally.count("does not stick", "found")
	}
	switch {
	case isNoOp && r.Outcome == ssa.DoesNotStick:
		tally.count("no-op requests", "content that does not stick, sent once by each process")
	case isNoOp && c.isSurplus():
		tally.count("no-op requests", "an atomic value with more than is wanted, sent once by each process")
		if s.live != nil {
			for _, path := range r.Paths() {
				tally.count("atomic values with unknown defaults", s.Kind+" "+keys.ReplaceAllString(path, "[]"))
			}
		}
	case isNoOp:
		tally.count("no-op requests", "undocumented")
		report(s, c.live, "a request changed nothing: %s", c.inWords())
	}
}

// isSurplus reports whether a call was for nothing but values of ours, as it is for an atomic one that has more than is wanted.
func (c *call) isSurplus() bool {
	return c.result.Outcome != ssa.DoesNotStick && !slices.ContainsFunc(c.result.Reasons, func(r ssa.Reason) bool { return r.Change != ssa.Changed })
}

// judgeRepetition judges a request that follows our own last write, with nothing in between. Only a process that does not know
// that write may send one, for what it cannot see, and it must change nothing but what is empty: a map that loses its last field
// is none after one apply and empty after the next.
func (s *side) judgeRepetition(ctx context.Context, c, before *call) error {
	s.judgeRequest(c)
	if c.writer == before.writer || c.result.Outcome != ssa.DoesNotStick && !c.isSurplus() {
		report(s, c.live, "sent again although nothing changed since our own last write: %s", c.inWords())
		return nil
	}
	after, err := s.fetch(ctx, s.version)
	if err != nil {
		return err
	}
	bare := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: withoutEmpties(unmanaged(u).Object).(content)}
	}
	if essence(bare(c.live)) != essence(bare(after)) {
		report(s, c.live, "changed what our own last write had left: %s\n  answer: %s", c.inWords(), encoded(after))
	}
	if c.result.Outcome != ssa.DoesNotStick && c.live.GetResourceVersion() != after.GetResourceVersion() {
		tally.count("requests that made a version and changed nothing", "an atomic value with more than is wanted, sent once by each process")
	}
	return nil
}

// check is a claim of the code under test that nothing is to be sent.
type check struct {
	*call
	// at is the object's version when the claim was made.
	at string
	// restless means that a real apply made a version that differs from the one before in nothing else.
	restless bool
}

func newCheck(c *call) *check {
	k := &check{call: c}
	if c.live != nil {
		k.at = c.live.GetResourceVersion()
	}
	if o := c.result.Object; o != nil && c.result.Migrated {
		k.at = o.GetResourceVersion()
	}
	return k
}

// without removes what a path leads to, and the maps that are empty then.
func without(d content, path string) content {
	p, err := fieldowners.ParsePath(path)
	if err != nil {
		panic(err)
	}
	cut, _ := removed(d, p).(content)
	return cut
}

func removed(v any, path fieldpath.Path) any {
	switch v := v.(type) {
	case content:
		name := *path[0].FieldName
		field, found := v[name]
		if !found {
			return v
		}
		if len(path) > 1 {
			v[name] = removed(field, path[1:])
		}
		if rest, isMap := v[name].(content); len(path) == 1 || isMap && len(rest) == 0 {
			delete(v, name)
		}
		return v
	case []any:
		i := slices.IndexFunc(v, func(item any) bool { return path[0].Key != nil && hasKey(item, *path[0].Key) })
		if i >= 0 && len(path) > 1 {
			v[i] = removed(v[i], path[1:])
		}
	}
	return v
}

func hasKey(item any, key value.FieldList) bool {
	fields, _ := item.(content)
	return !slices.ContainsFunc(key, func(f value.Field) bool {
		v, set := fields[f.Name]
		return set && encoded(normal(v)) != encoded(normal(f.Value.Unstructured()))
	})
}

// verify sends for real what the code under test held to be needless. It reports true when the check is to be made again, since
// an apply made a version that differs in nothing.
func (k *check) verify(ctx context.Context) (again bool, err error) {
	if err := k.settle(ctx); err != nil {
		return false, err
	}
	live, err := k.fetch(ctx, k.version)
	if err != nil {
		return false, err
	}
	if k.err == nil && (live == nil || live.GetResourceVersion() != k.at) {
		report(k.side, live, "the object is not the one of the claim, version %s: %s", k.at, k.inWords())
		return false, nil
	}
	force := k.rules.Default == ""
	statement := k.statement(live, k.result.Yielded)
	answer, err := k.patch(ctx, types.ApplyPatchType, statement, k.version, me, force)
	if err != nil && !isRefusal(err) {
		return false, fmt.Errorf("verify %s: %w", k.name, err)
	}
	k.note("real apply: %v", err)
	if err == nil && k.isSkip() && onlyDrops(live, answer, statement) {
		tally.count("claims verified", dropping)
		return false, remove(ctx, k.side, live) // what is left is not what anybody asked for
	}
	return k.compare(live, answer, err), nil
}

func (k *check) isSkip() bool { return k.err == nil && k.result.Outcome == ssa.Unchanged }

// settle has the object stored as it is read, by a patch that says nothing. What is stored may be older than the schema's
// defaults, or have content that the schema prunes when it is read; any write then makes a version, whatever its content is.
func (k *check) settle(ctx context.Context) error {
	before, err := k.fetch(ctx, k.version)
	if err != nil || before == nil || before.GetResourceVersion() != k.at {
		return err
	}
	main := &side{object: k.object}
	after, err := main.patch(ctx, types.MergePatchType, content{}, k.version, "settler", false)
	if isRefusal(err) {
		return nil
	}
	k.note("patch that says nothing: %v", err)
	if err == nil && after.GetResourceVersion() != k.at {
		tally.count("claims verified", "after a patch that says nothing made a version, since storage had other bytes")
		k.at = after.GetResourceVersion()
	}
	return err
}

// Skips that are right although a real apply makes a version.
const (
	restless   = "skip; each apply makes a version that differs in nothing: null or empty content that is pruned"
	reordering = "skip; an apply makes one version that differs in nothing but the order of managedFields: defaults in an atomic value"
	emptying   = "skip; an apply differs in nothing but an empty map or list, or null, in place of another one or of none"
	disowning  = "skip; an apply differs in nothing but that a co-owner loses a value of ours: defaults in an atomic value"
	booking    = "skip; an apply of content without any field makes an entry for those of an object without managedFields"
	dropping   = "skip; an apply drops the very map that it asks for: {} where nobody owns what is in there, an empty list among it"
)

// littleBetween names the exception by which answer may differ from live, "" when there is none.
func (k *check) littleBetween(live, answer *unstructured.Unstructured) string {
	switch {
	case k.rules.Default == "" && onlyDisowns(live, answer):
		return disowning
	case k.onlyEmpties(live, answer):
		return emptying
	case onlyBooks(live, answer):
		return booking
	}
	return ""
}

// compare judges the claim by what a real apply did.
func (k *check) compare(live, answer *unstructured.Unstructured, refusal error) (again bool) {
	if k.err != nil {
		tally.count("claims verified", "refused, by both")
		if refusal == nil {
			report(k.side, live, "refused what the API server accepts: %s", k.inWords())
		}
		return false
	}
	changed := refusal == nil && answer.GetResourceVersion() != live.GetResourceVersion()
	same := refusal != nil || essence(live) == essence(answer)
	outcome, little := k.result.Outcome, ""
	if changed {
		little = k.littleBetween(live, answer)
	}
	switch {
	case outcome == ssa.Unchanged && refusal != nil:
		tally.count("claims verified", "skip; an apply is refused, for others have left the object invalid")
	case outcome == ssa.Unchanged && changed && same && !k.restless:
		k.restless, k.at = true, answer.GetResourceVersion()
		return true
	case outcome == ssa.Unchanged && changed && same:
		tally.count("claims verified", restless)
	case outcome == ssa.Unchanged && changed && little != "":
		tally.count("claims verified", little)
	case outcome == ssa.Unchanged && changed:
		report(k.side, live, "FALSE SKIP: a real apply made version %s; %s\n  answer: %s", answer.GetResourceVersion(), k.inWords(), encoded(answer))
	case outcome == ssa.Unchanged && k.restless:
		tally.count("claims verified", reordering)
	case outcome == ssa.Unchanged:
		tally.count("claims verified", "skip")
	case outcome == ssa.DoesNotStick && !same && little == "":
		report(k.side, live, "held back as not sticking, but it changes the object: %s\n  answer: %s", k.inWords(), encoded(answer))
	case outcome == ssa.DoesNotStick:
		tally.count("claims verified", "does not stick")
	case outcome == ssa.Conflicted && refusal == nil:
		report(k.side, live, "Conflicted, but the API server sees no conflict: %s", k.inWords())
	case outcome == ssa.Conflicted:
		tally.count("claims verified", "conflict, by both")
	default:
		report(k.side, live, "unexpected outcome: %s", k.inWords())
	}
	return false
}
