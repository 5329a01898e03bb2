package model

import (
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
)

// continued is the trace of all that can happen after a path within so many moves, in a form that does not tell the path itself.
func continued(t *testing.T, e *explorer, path []Move, moves int) []string {
	t.Helper()
	g := NewWithT(t)
	w, err := e.replay(path)
	g.Expect(err).NotTo(HaveOccurred())
	if w == nil {
		return nil
	}
	defer w.close()
	d := w.Digest()
	lines := []string{fmt.Sprintf("%x", d[:8])}
	if moves == 0 {
		return lines
	}
	for _, m := range w.Moves() {
		for _, line := range continued(t, e, append(path[:len(path):len(path)], m), moves-1) {
			lines = append(lines, m.String()+" > "+line)
		}
	}
	return lines
}

// TestStatesAreStates replays paths that the explorer takes for ways to the same state: whatever happens next must then be the same.
func TestStatesAreStates(t *testing.T) {
	g := NewWithT(t)
	s := smallScenario(t, small{}, map[string]int{edits: 1, rivals: 1})
	e := &explorer{Scenario: s, seen: map[Digest]bool{}, quiet: map[Digest]int{}}
	g.Expect(e.prepare()).To(Succeed())
	ways := map[Digest][]Move{}
	merged := 0
	var walk func(path []Move, left int)
	walk = func(path []Move, left int) {
		w, err := e.replay(path)
		g.Expect(err).NotTo(HaveOccurred())
		if w == nil {
			return
		}
		d, moves := w.Digest(), w.Moves()
		w.close()
		if first, found := ways[d]; found {
			merged++
			g.Expect(continued(t, e, path, 2)).To(Equal(continued(t, e, first, 2)), "%s and %s", FormatPath(path), FormatPath(first))
			return
		}
		ways[d] = path
		for _, m := range moves {
			if left > 0 {
				walk(append(path[:len(path):len(path)], m), left-1)
			}
		}
	}
	walk(nil, 3)
	t.Logf("%d states, %d second ways to one of them", len(ways), merged)
	g.Expect(merged).To(BeNumerically(">", 10), "nothing was compared")
}

// TestPathsAreReplayed wants the same from the same path, twice.
func TestPathsAreReplayed(t *testing.T) {
	g := NewWithT(t)
	e := &explorer{Scenario: appScenario(t, true, map[string]int{rivals: 1}), seen: map[Digest]bool{}, quiet: map[Digest]int{}}
	g.Expect(e.prepare()).To(Succeed())
	path := []Move{{Kind: RivalActs, Name: "a rival forces the Deployment's image"}, {Kind: Deliver, Name: "Deployment"}, {Kind: Reconcile}}
	var digests []Digest
	var traces []string
	for range 2 {
		w, err := e.replay(path)
		g.Expect(err).NotTo(HaveOccurred())
		digests = append(digests, w.Digest())
		g.Expect(e.check(w)).To(BeNumerically(">", 0))
		traces = append(traces, w.Trace())
		w.close()
		e.quiet = map[Digest]int{}
	}
	g.Expect(digests[0]).To(Equal(digests[1]))
	g.Expect(traces[0]).To(Equal(traces[1]))
}

func TestAMoveThatIsNone(t *testing.T) {
	g := NewWithT(t)
	w, err := newWorld(smallScenario(t, small{}, nil), nil)
	g.Expect(err).NotTo(HaveOccurred())
	defer w.close()
	g.Expect(errors.Is(w.Apply(Move{Kind: Wait}), errNotPossible)).To(BeTrue())
	g.Expect(w.Apply(Move{Kind: "sing"})).To(MatchError(ContainSubstring("unknown move")))
}
