package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Move is one step of a path.
type Move struct {
	// Kind is one of the kinds below, or the name of a budget.
	Kind string
	// Name of what is delivered, of who acts.
	Name string
	// At is the write of a reconcile to which something happens, from 1.
	At int
}

// Kinds of moves that take from no budget.
const (
	Deliver   = "deliver"
	Reconcile = "reconcile"
	Wait      = "wait"
	Act       = "act"
	Collect   = "collect garbage"
	RivalActs = "rival"
	OldLeader = "old leader acts"
)

// String is the move as a counterexample shows it.
func (m Move) String() string {
	words := m.Kind
	switch m.Kind {
	case Deliver, BudgetRelist:
		words += " " + m.Name
	case Act, RivalActs:
		words = m.Name
	case BudgetLost, BudgetUnsent, BudgetMidCrash:
		words = fmt.Sprintf("reconcile, %s at write %d", m.Kind, m.At)
	case BudgetBetween:
		words = fmt.Sprintf("reconcile, and before write %d: %s", m.At, m.Name)
	}
	return words
}

// FormatPath is a path in one line.
func FormatPath(path []Move) string {
	words := make([]string, len(path))
	for i, m := range path {
		words[i] = m.String()
	}
	return strings.Join(words, "; ")
}

// errNotPossible says that a move is none in this state.
var errNotPossible = errors.New("model: not possible")

// maxAt is to how many writes of one reconcile things happen.
const maxAt = 3

// Moves are all that can happen next, in a fixed order.
func (w *World) Moves() []Move {
	var moves []Move
	for _, i := range w.operator.informers.watched(w.server) {
		i.skip(w.server)
		if _, found := i.pending(w.server); found {
			moves = append(moves, Move{Kind: Deliver, Name: i.gvk.Kind})
			if len(w.server.logs[i.gvk.GroupKind()])-i.at > 1 && w.left[BudgetRelist] > 0 {
				moves = append(moves, Move{Kind: BudgetRelist, Name: i.gvk.Kind})
			}
		}
	}
	if len(w.operator.queue.ready()) > 0 {
		moves = append(moves, Move{Kind: Reconcile})
		for _, kind := range []string{BudgetLost, BudgetUnsent, BudgetMidCrash} {
			moves = append(moves, w.atEach(kind, "")...)
		}
	}
	if _, found := w.operator.queue.next(); found {
		moves = append(moves, Move{Kind: Wait})
	}
	for _, p := range w.Processes {
		if took, err := p.Step(ctx(), w.server.copied(w.clock.Now)); err != nil || took {
			moves = append(moves, Move{Kind: Act, Name: p.Name})
		}
	}
	if w.server.HasGarbage() {
		moves = append(moves, Move{Kind: Collect})
	}
	for _, kind := range []string{BudgetRestart, BudgetLeader} {
		if w.left[kind] > 0 {
			moves = append(moves, Move{Kind: kind})
		}
	}
	if w.former != nil && len(w.former.queue.all()) > 0 {
		moves = append(moves, Move{Kind: OldLeader})
	}
	return append(moves, w.rivalMoves()...)
}

// atEach is a move for each write of a reconcile to which something may happen.
func (w *World) atEach(kind, name string) []Move {
	var moves []Move
	for at := 1; at <= maxAt && w.left[kind] > 0; at++ {
		moves = append(moves, Move{Kind: kind, Name: name, At: at})
	}
	return moves
}

func (w *World) rivalMoves() []Move {
	var moves []Move
	for _, r := range w.Rivals {
		if w.left[r.Budget] <= 0 || r.Can != nil && !r.Can(w.server) {
			continue
		}
		moves = append(moves, Move{Kind: RivalActs, Name: r.Name})
		if len(w.operator.queue.ready()) > 0 {
			moves = append(moves, w.atEach(BudgetBetween, r.Name)...)
		}
	}
	return moves
}

// Apply makes one move. The error is errNotPossible for a move that is none here.
func (w *World) Apply(m Move) error {
	w.path = append(slices.Clip(w.path), m)
	w.clock.SetTime(w.clock.Now().Add(w.Tick))
	w.tell(fmt.Sprintf("%2d  %s", len(w.path), m))
	if _, bounded := w.Budgets[m.Kind]; bounded {
		w.left[m.Kind]--
	}
	switch m.Kind {
	case Deliver, BudgetRelist:
		return w.deliver(m)
	case Reconcile, BudgetLost, BudgetUnsent:
		return w.reconcile(w.operator, plan{at: m.At, kind: m.Kind})
	case BudgetMidCrash:
		if err := w.reconcile(w.operator, plan{at: m.At, kind: m.Kind}); err != nil {
			return err
		}
		w.operator.stop()
		return w.restart()
	case BudgetBetween:
		r := w.rival(m.Name)
		return w.reconcile(w.operator, plan{at: m.At, kind: m.Kind, rival: r})
	case Wait:
		return w.pass()
	case Act:
		return w.step(m.Name)
	case Collect:
		w.server.CollectGarbage()
		return nil
	case RivalActs:
		return w.act(w.rival(m.Name))
	}
	return w.change(m)
}

// change makes the moves after which another process runs.
func (w *World) change(m Move) error {
	switch m.Kind {
	case BudgetRestart:
		w.operator.stop()
		return w.restart()
	case BudgetLeader:
		if w.former != nil {
			w.former.stop()
		}
		w.former = w.operator
		return w.restart()
	case OldLeader:
		for _, r := range w.former.queue.all() {
			w.former.queue.Add(r)
		}
		err := w.reconcile(w.former, plan{})
		w.former.stop()
		w.former = nil
		return err
	}
	return fmt.Errorf("model: unknown move %q", m.Kind)
}

// rival finds a rival and takes from his budget.
func (w *World) rival(name string) *Rival {
	i := slices.IndexFunc(w.Rivals, func(r Rival) bool { return r.Name == name })
	w.left[w.Rivals[i].Budget]--
	return &w.Rivals[i]
}

// deliver lets a cache hear of the next event, or by a relist of all at once.
func (w *World) deliver(m Move) error {
	watched := w.operator.informers.watched(w.server)
	i := watched[slices.IndexFunc(watched, func(i *informer) bool { return i.gvk.Kind == m.Name })]
	if m.Kind == BudgetRelist {
		return i.relist(w.server)
	}
	e, _ := i.pending(w.server)
	w.trace[len(w.trace)-1] += ": " + e.String()
	err := i.deliver(w.server)
	i.skip(w.server)
	return err
}
