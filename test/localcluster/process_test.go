package localcluster

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func startShell(t *testing.T, script string) *process {
	g := NewWithT(t)
	s := newSpawner()
	t.Cleanup(s.close)
	p, err := s.startProcess("shell", exec.Command("sh", "-c", script), filepath.Join(t.TempDir(), "log"))
	g.Expect(err).NotTo(HaveOccurred())
	return p
}

func TestStopKillsAChildThatDoesNotEnd(t *testing.T) {
	g := NewWithT(t)
	p := startShell(t, "trap '' TERM; echo ready; while :; do sleep 0.05; done")
	g.Eventually(p.tail, time.Minute).Should(Equal("ready"))
	p.stop(100 * time.Millisecond)
	g.Expect(p.running()).To(BeFalse())
	g.Expect(p.cmd.ProcessState.String()).To(ContainSubstring("killed"))
}

func TestStopOfAnEndedChildReturns(t *testing.T) {
	g := NewWithT(t)
	p := startShell(t, "exit 0")
	g.Eventually(p.running, time.Minute).Should(BeFalse())
	p.stop(time.Minute)
	g.Expect(p.cmd.ProcessState.Success()).To(BeTrue())
}

func TestAFailedStartTellsTheLastWords(t *testing.T) {
	g := NewWithT(t)
	p := startShell(t, "for i in $(seq 50); do echo line $i; done; echo no such flag >&2; exit 3")
	c := &Cluster{}
	err := c.await(t.Context(), "shell", []*process{p}, func(context.Context) error { return errors.New("not yet") })
	g.Expect(err).To(MatchError(And(
		ContainSubstring("shell ended by itself (exit status 3)"),
		ContainSubstring("line 50\nno such flag"),
		Not(ContainSubstring("line 30\n")),
	)))
	g.Expect(err).NotTo(MatchError(errPortTaken))
}

func TestALostPortIsToldApart(t *testing.T) {
	g := NewWithT(t)
	p := startShell(t, "echo 'listen tcp 127.0.0.1:1: bind: address already in use'; exit 1")
	g.Eventually(p.running, time.Minute).Should(BeFalse())
	g.Expect(startError(p)).To(MatchError(errPortTaken))
}
