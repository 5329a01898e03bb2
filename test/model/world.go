package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// epoch is the time at which every path begins; it is far from the real time, by which the server tells what was written just now.
var epoch = time.Date(2019, 3, 1, 12, 0, 0, 0, time.UTC)

// Effect is what became of a request.
type Effect string

// The effects.
const (
	// Wrote: the object has a new version, or is gone.
	Wrote Effect = "wrote"
	// NoChange: accepted, and nothing changed.
	NoChange Effect = "no change"
	// Refused: answered with an error.
	Refused Effect = "refused"
)

// Sent is a write of the operator, as it met the server.
type Sent struct {
	Request
	Effect Effect
	Err    error
	// Lost tells that the operator did not get the answer.
	Lost bool
}

// String is the request with what became of it.
func (s Sent) String() string {
	words := fmt.Sprintf("%s: %s", s.Request, s.Effect)
	if s.Err != nil {
		words += " (" + s.Err.Error() + ")"
	}
	if s.Lost {
		words += ", but the answer is lost"
	}
	return words
}

// Rival is somebody else's deed, a move that may come at any time within the budget.
type Rival struct {
	Name string
	// Budget names the budget that it takes from; deeds of one name share one.
	Budget string
	// Can tells whether it makes sense now; nil means always.
	Can func(*Server) bool
	// Do does it. What the server refuses is no deed.
	Do func(ctx context.Context, c client.Client) error
}

// Process is one of Kubernetes' own controllers, which acts on what the server has now.
type Process struct {
	Name string
	// Step takes one step, and reports whether there was one to take.
	Step func(ctx context.Context, s *Server) (bool, error)
}

// Names of budgets that are not those of rivals.
const (
	BudgetRestart   = "restart"
	BudgetLeader    = "leader change"
	BudgetLost      = "lost answer"
	BudgetUnsent    = "unsent request"
	BudgetMidCrash  = "crash in the middle"
	BudgetBetween   = "rival in the middle"
	BudgetRelist    = "relist"
	BudgetStaleList = "restart on a stale list"
)

// Scenario is what is explored.
type Scenario struct {
	Name     string
	Kinds    *Kinds
	Operator Operator
	// Begin makes the objects with which every path begins; with Converged the operator has run to quiet before that.
	Begin     func(ctx context.Context, c client.Client) error
	Converged bool
	// Rivals and Processes are the others.
	Rivals    []Rival
	Processes []Process
	// Budgets bound the moves of a kind on a path; what is not named is not done.
	Budgets map[string]int
	// Tick is how far the clock goes on with each move.
	Tick time.Duration
	// Bound is how many requests of the operator may be accepted on a path with these moves, until all is quiet.
	Bound func(path []Move) int
	// Desired says what is wrong with the state in which all is quiet.
	Desired func(s *Server) error
}

// World is one state of a scenario, with the way that led there.
type World struct {
	*Scenario
	clock  *testingclock.FakePassiveClock
	server *Server
	// operator is the leader, former the one before it, which does not know yet.
	operator, former *instance
	left             map[string]int
	path             []Move
	sent             []Sent
	// trace tells what happened, with the requests.
	trace []string
	plan  plan
}

// plan is what happens to the requests of the reconcile that goes on.
type plan struct {
	// count is the number of writes so far, at the one that something happens to; 0 means none.
	count, at int
	kind      string
	rival     *Rival
	err       error
}

// newWorld begins a path on a copy of a server.
func newWorld(s *Scenario, from *Server) (*World, error) {
	w := &World{Scenario: s, clock: testingclock.NewFakePassiveClock(epoch), left: map[string]int{}}
	for name, n := range s.Budgets {
		w.left[name] = n
	}
	if from == nil {
		w.server = NewServer(s.Kinds, w.clock.Now)
		if err := s.Begin(ctx(), w.server.Client()); err != nil {
			return nil, fmt.Errorf("begin: %w", err)
		}
	} else {
		w.clock.SetTime(from.now())
		w.server = from.copied(w.clock.Now)
	}
	if err := w.restart(); err != nil || from == nil || !s.Converged {
		return w, err
	}
	return w, w.lookOnce()
}

// lookOnce lets an operator that was just started find that everything is in place.
func (w *World) lookOnce() error {
	for len(w.operator.queue.ready()) > 0 {
		if err := w.reconcile(w.operator, plan{}); err != nil {
			return err
		}
	}
	if len(w.sent) > 0 {
		return fmt.Errorf("converged, but after a restart: %s", w.sent[0])
	}
	w.trace = nil
	return nil
}

func ctx() context.Context { return context.Background() }

// close ends the processes.
func (w *World) close() {
	for _, i := range []*instance{w.operator, w.former} {
		if i != nil {
			i.stop()
		}
	}
}

// errAnswerLost is what a client gets when a connection breaks.
var errAnswerLost = fmt.Errorf("model: %w", syscall.ECONNRESET)

// send is what the operator's client calls for a write.
func (w *World) send(_ context.Context, q Request) (*unstructured.Unstructured, error) {
	if !q.DryRun {
		w.plan.count++
	}
	here := w.plan.count == w.plan.at && !q.DryRun
	switch {
	case w.plan.kind == BudgetMidCrash && w.plan.count > w.plan.at:
		return nil, context.Canceled
	case here && w.plan.kind == BudgetUnsent:
		return nil, errAnswerLost
	case here && w.plan.kind == BudgetBetween:
		if w.plan.err = w.act(w.plan.rival); w.plan.err != nil {
			return nil, context.Canceled
		}
	}
	answer, sent := w.do(q)
	sent.Lost = here && w.plan.kind == BudgetLost
	w.sent = append(w.sent, sent)
	w.tell("    " + sent.String())
	if sent.Lost {
		return nil, errAnswerLost
	}
	return answer, sent.Err
}

// do carries a request out and finds what it changed.
func (w *World) do(q Request) (*unstructured.Unstructured, Sent) {
	before := w.server.objects[q.Key()]
	answer, err := w.server.Do(q)
	sent := Sent{Request: q, Effect: NoChange, Err: err}
	switch {
	case err != nil:
		sent.Effect = Refused
	case w.server.objects[q.Key()] != before:
		sent.Effect = Wrote
	}
	return answer, sent
}

func (w *World) tell(line string) { w.trace = append(w.trace, line) }

// maxTrace bounds the lines of a trace; the middle of a longer one is left out.
const maxTrace = 120

// Trace is what happened so far, one line for each move and each request.
func (w *World) Trace() string {
	lines := w.trace
	if left := len(lines) - maxTrace; left > 0 {
		lines = slices.Concat(lines[:maxTrace/2], []string{fmt.Sprintf("... %d lines ...", left)}, lines[len(lines)-maxTrace/2:])
	}
	return strings.Join(lines, "\n")
}

// accepted is the number of requests that the server accepted, writes or not.
func (w *World) accepted() int {
	n := 0
	for _, s := range w.sent {
		if s.Effect != Refused && !s.DryRun {
			n++
		}
	}
	return n
}

// act lets a rival do his deed.
func (w *World) act(r *Rival) error {
	if r.Can != nil && !r.Can(w.server) {
		return errNotPossible
	}
	if err := r.Do(ctx(), w.server.Client()); err != nil {
		var status apierrors.APIStatus
		if errors.As(err, &status) {
			return errNotPossible
		}
		return fmt.Errorf("%s: %w", r.Name, err)
	}
	return nil
}

// reconcile works on the item that is ready.
func (w *World) reconcile(i *instance, p plan) error {
	ready := i.queue.ready()
	if len(ready) == 0 {
		return errNotPossible
	}
	w.plan = p
	delete(i.queue.due, ready[0])
	result, err := i.controller.Reconcile(ctx(), ready[0])
	i.queue.done(ready[0], result, err)
	p, w.plan = w.plan, plan{}
	w.tell("    " + words(result, err))
	switch {
	case p.err != nil:
		return p.err
	case p.at > p.count:
		return errNotPossible // it made fewer requests
	}
	return nil
}

func words(result reconcile.Result, err error) string {
	switch {
	case err != nil:
		return "again after error: " + err.Error()
	case result.RequeueAfter > 0:
		return fmt.Sprintf("again after %s", result.RequeueAfter)
	}
	return "done"
}

// restart starts a process that knows nothing.
func (w *World) restart() error {
	var err error
	w.operator, err = w.Operator.start(w.server, w.clock, w.send)
	return err
}

// pass lets time pass until the next thing that the operator waits for.
func (w *World) pass() error {
	next, found := w.operator.queue.next()
	if !found {
		return errNotPossible
	}
	w.clock.SetTime(next)
	return nil
}

// step lets one of Kubernetes' own controllers take a step.
func (w *World) step(name string) error {
	i := slices.IndexFunc(w.Processes, func(p Process) bool { return p.Name == name })
	took, err := w.Processes[i].Step(ctx(), w.server)
	if err == nil && !took {
		return errNotPossible
	}
	return err
}
