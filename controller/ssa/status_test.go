package ssa

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestDetailsWaitWhateverIncidentalComesWithThem(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()
	w := &StatusWriter{details: []string{"replicas"}, incidental: []string{"version"}, settle: 2 * time.Second}
	wait := func(paths ...string) time.Duration {
		c := &call{record: &record{at: now}, now: now, content: &content{}}
		c.result.Reasons = changes(paths)
		return w.wait(c)
	}
	g.Expect(wait(".status.replicas")).To(Equal(2 * time.Second))
	g.Expect(wait(".status.replicas", ".status.version")).To(Equal(2 * time.Second))
	g.Expect(wait(".status.replicas", ".status.version", ".status.phase")).To(BeZero())
}

func TestWhatIsTakenIsNotIncidental(t *testing.T) {
	g := NewWithT(t)
	w := &StatusWriter{incidental: []string{"version"}}
	for change, incidental := range map[Change]bool{Changed: true, Added: true, Removed: true, Taken: false, Shared: false} {
		g.Expect(w.isIncidental(Reason{Change: change, Path: ".status.version"})).To(Equal(incidental), string(change))
		g.Expect(w.isIncidental(Reason{Change: change, Path: ".status.versions"})).To(BeFalse(), string(change))
	}
}

func changes(paths []string) []Reason {
	var reasons []Reason
	for _, p := range paths {
		reasons = append(reasons, Reason{Change: Changed, Path: p})
	}
	return reasons
}
