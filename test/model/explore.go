package model

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Limits of the run to quiet.
const (
	// maxSettling is after how many moves it counts as endless.
	maxSettling = 400
	// maxIdle is how many waits in a row without a write count as quiet, although somebody still looks now and then.
	maxIdle = 8
)

// Found is what an exploration saw.
type Found struct {
	// Paths is the number of paths that were walked, States that of different states that they led to, Merged that of paths that led to
	// a state known before, Moves that of all moves, with those of the runs to quiet.
	Paths, States, Merged, Moves int
	// MostRequests is the most that were accepted on a path until all was quiet, MostAllowed the bound there, and Busiest that path.
	MostRequests, MostAllowed int
	Busiest                   []Move
	// NoChanges is the number of accepted requests that changed nothing, over all paths.
	NoChanges int
	// Complete tells that no path of the depth was left out.
	Complete bool
	// Depth is the number of moves up to which all paths were walked.
	Depth int
}

// String gives the figures in one line.
func (f Found) String() string {
	return fmt.Sprintf("depth %d (complete %t): %d paths, %d states, %d merged, %d moves; at most %d requests (of %d allowed, by: %s); %d requests without change",
		f.Depth, f.Complete, f.Paths, f.States, f.Merged, f.Moves, f.MostRequests, f.MostAllowed, FormatPath(f.Busiest), f.NoChanges)
}

// Counterexample is a path after which something is wrong. It is one of the shortest.
type Counterexample struct {
	Path []Move
	Err  error
	// Trace is the path and the run to quiet, move by move with the requests.
	Trace string
}

func (c *Counterexample) Error() string {
	return fmt.Sprintf("after %d moves: %v\npath: %s\n%s", len(c.Path), c.Err, FormatPath(c.Path), c.Trace)
}

// Explore walks every path of a scenario up to a depth, breadth first, and checks each state that it meets. It stops at the first
// counterexample, which is the error. When the time is over it stops too, after all paths of a smaller depth; that is no error.
func Explore(s *Scenario, depth int, until time.Time) (Found, error) {
	e := &explorer{Scenario: s, seen: map[Digest]bool{}, quiet: map[Digest]int{}, until: until}
	if err := e.prepare(); err != nil {
		return e.found, err
	}
	frontier := [][]Move{nil}
	if err := e.level(&frontier, true); err != nil {
		return e.found, err
	}
	for e.found.Depth < depth && len(frontier) > 0 {
		if err := e.level(&frontier, false); err != nil || e.late() {
			return e.found, err
		}
		e.found.Depth++
	}
	e.found.Complete = true
	return e.found, nil
}

// explorer is one exploration.
type explorer struct {
	*Scenario
	begin *Server
	until time.Time

	mu    sync.Mutex
	seen  map[Digest]bool
	found Found
	// quiet are states that run to quiet as they should, when the world stops there, with the number of requests until then.
	quiet map[Digest]int
}

func (e *explorer) late() bool { return !e.until.IsZero() && time.Now().After(e.until) }

// prepare makes the server with which every path begins.
func (e *explorer) prepare() error {
	w, err := newWorld(e.Scenario, nil)
	if err != nil {
		return err
	}
	defer w.close()
	if e.Converged {
		w.stop()
		if err := w.settle(nil); err != nil {
			return fmt.Errorf("%s, before the first move: %w\n%s", e.Name, err, w.Trace())
		}
	}
	e.begin = w.server
	return nil
}

// node is a state that was met for the first time.
type node struct {
	path  []Move
	moves []Move
	err   error
	trace string
}

// level walks all paths that are one move longer than those of the frontier, and makes those that led to new states the next frontier.
// first walks the empty path instead.
func (e *explorer) level(frontier *[][]Move, first bool) error {
	paths := *frontier
	nodes := make([]*node, len(paths))
	var wg sync.WaitGroup
	next := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				nodes[i] = e.walk(paths[i])
			}
		})
	}
	for i := range paths {
		if e.late() && !first {
			break
		}
		next <- i
	}
	close(next)
	wg.Wait()
	var longer [][]Move
	for _, n := range nodes {
		switch {
		case n == nil:
		case n.err != nil:
			return &Counterexample{Path: n.path, Err: n.err, Trace: n.trace}
		default:
			for _, m := range n.moves {
				longer = append(longer, append(slices.Clip(n.path), m))
			}
		}
	}
	*frontier = longer
	return nil
}

// walk walks one path from its beginning; nil when it is none, or leads to a state that is known.
func (e *explorer) walk(path []Move) *node {
	w, err := e.replay(path)
	if w == nil && err == nil {
		return nil
	}
	n := &node{path: path, err: err}
	if err != nil {
		return n
	}
	defer w.close()
	if !e.isNew(w) {
		return nil
	}
	n.moves = w.Moves()
	requests := 0
	if requests, n.err = e.check(w); n.err != nil {
		n.trace = w.Trace()
	}
	e.note(w, path, requests)
	return n
}

// replay makes the moves of a path; nil when the last one is none.
func (e *explorer) replay(path []Move) (*World, error) {
	w, err := newWorld(e.Scenario, e.begin)
	if err != nil {
		return nil, err
	}
	for i, m := range path {
		switch err := w.Apply(m); {
		case errors.Is(err, errNotPossible) && i == len(path)-1:
			w.close()
			return nil, nil
		case err != nil:
			w.close()
			return nil, fmt.Errorf("replay %s: %w", m, err)
		}
	}
	return w, nil
}

func (e *explorer) isNew(w *World) bool {
	d := w.Digest()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.found.Paths++
	if e.seen[d] {
		e.found.Merged++
		return false
	}
	e.seen[d] = true
	e.found.States++
	return true
}

func (e *explorer) note(w *World, path []Move, requests int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.found.Moves += len(w.path)
	if requests > e.found.MostRequests || requests == e.found.MostRequests && comparePaths(path, e.found.Busiest) < 0 {
		e.found.MostRequests, e.found.MostAllowed, e.found.Busiest = requests, w.Bound(path), path
	}
	for _, s := range w.sent {
		if s.Effect == NoChange {
			e.found.NoChanges++
		}
	}
}

func comparePaths(a, b []Move) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return slices.Compare([]string{FormatPath(a)}, []string{FormatPath(b)})
}

// check lets the world stop and run to quiet, and says what is wrong then. It returns the number of requests that were accepted until
// then. Where it comes to a state that it checked before, it knows the rest.
func (e *explorer) check(w *World) (requests int, err error) {
	path := w.path
	w.stop()
	met := map[Digest]int{}
	known := -1
	err = w.settle(func() bool {
		d := w.Digest()
		e.mu.Lock()
		defer e.mu.Unlock()
		if rest, found := e.quiet[d]; found {
			known = rest
			return true
		}
		met[d] = w.accepted()
		return false
	})
	requests = w.accepted() + max(known, 0)
	if err == nil {
		if allowed := w.Bound(path); requests > allowed {
			err = fmt.Errorf("%d requests, of %d that are allowed", requests, allowed)
		}
	}
	if err == nil && known < 0 {
		err = w.quietAsDesired()
	}
	if err != nil {
		return requests, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for d, accepted := range met {
		e.quiet[d] = requests - accepted
	}
	return requests, nil
}

func (w *World) quietAsDesired() error {
	if err := w.Desired(w.server); err != nil {
		return fmt.Errorf("quiet, but not as desired: %w", err)
	}
	return w.holds()
}

// stop leaves nobody to act but the operator and Kubernetes' own controllers.
func (w *World) stop() {
	w.tell("--  the world stops, and all runs to quiet")
	w.left = map[string]int{}
	if w.former != nil {
		w.former.stop()
		w.former = nil
	}
}

// settle runs everything in a fair order until nothing happens any more, or until enough says so, which is asked before each reconcile.
func (w *World) settle(enough func() bool) error {
	idle, sent := 0, len(w.sent)
	for range maxSettling {
		moves := w.Moves()
		if len(moves) == 0 || idle > maxIdle {
			return nil
		}
		m := moves[fairest(moves)]
		if m.Kind == Reconcile && enough != nil && enough() {
			return nil
		}
		if m.Kind == Wait {
			idle++
		}
		if err := w.Apply(m); err != nil {
			return fmt.Errorf("%s: %w", m, err)
		}
		if sent != len(w.sent) {
			idle, sent = 0, len(w.sent)
		}
	}
	return fmt.Errorf("not quiet after %d moves", maxSettling)
}

// fairest is the move that is made first: time passes only when there is nothing else to do.
func fairest(moves []Move) int {
	return max(0, slices.IndexFunc(moves, func(m Move) bool { return m.Kind != Wait }))
}

// holds says what is wrong with a quiet state: that it does not stay when everything is looked at once more, by the same process and
// by one that knows nothing.
func (w *World) holds() error {
	before := len(w.sent)
	w.tell("--  everything is looked at once more, before and after a restart")
	for _, i := range w.operator.informers.watched(w.server) {
		if err := i.resync(); err != nil {
			return err
		}
	}
	if err := w.settle(nil); err != nil {
		return err
	}
	w.operator.stop()
	if err := w.restart(); err != nil {
		return err
	}
	if err := w.settle(nil); err != nil {
		return err
	}
	if len(w.sent) > before {
		return fmt.Errorf("quiet, but then: %s", w.sent[before])
	}
	return nil
}

// resync tells of every object again.
func (i *informer) resync() error {
	for _, v := range i.sorted() {
		for _, h := range i.handlers {
			if err := h.tell(v, v, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// Digest identifies everything on which the rest of a path depends.
func (w *World) Digest() Digest {
	d := newDigester()
	d.text(w.clock.Now().String())
	d.number(uint64(w.Bound(w.path) - w.accepted()))
	d.value(reflect.ValueOf(w.left))
	d.server(w.server)
	for _, i := range []*instance{w.operator, w.former} {
		d.instance(i, w.server)
	}
	return d.sum()
}

func (d *digester) server(s *Server) {
	for _, key := range s.Keys() {
		d.text(key.Group + "/" + key.Kind + "/" + key.Namespace + "/" + key.Name)
		d.version(s.objects[key])
	}
	d.value(reflect.ValueOf(s.counters))
}

func (d *digester) version(v *Version) {
	if v == nil {
		d.text("nil")
		return
	}
	sum := v.digest()
	d.hash.Write(sum[:])
}

// instance hashes what a process knows, has yet to hear and remembers.
func (d *digester) instance(i *instance, s *Server) {
	if i == nil {
		d.text("nil")
		return
	}
	for _, informer := range i.informers.watched(s) {
		informer.skip(s)
		for _, v := range informer.sorted() {
			d.version(v)
		}
		d.text("pending")
		for _, e := range s.logs[informer.gvk.GroupKind()][informer.at:] {
			d.version(e.After)
		}
	}
	d.value(reflect.ValueOf(i.queue.due))
	d.value(reflect.ValueOf(i.queue.failures))
	for _, m := range i.memory {
		d.value(reflect.ValueOf(m))
	}
}
