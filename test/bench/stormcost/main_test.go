package main

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"
)

// The test binary is the detector as well when it is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "detect" {
		os.Exit(command(os.Args[1:]))
	}
	os.Exit(m.Run())
}

func TestWrongUse(t *testing.T) {
	for text, args := range map[string][]string{
		"--for must be positive": {"--for=0s"},
		"must be positive":       {"--rate=0"},
		"unknown flag":           {"--nope"},
		"unknown command":        {"nope"},
		"read the kubeconfig":    {"detect", "--kubeconfig=no-such-file"},
	} {
		root := newRoot()
		root.SetArgs(args)
		NewWithT(t).Expect(root.ExecuteContext(context.Background())).To(MatchError(ContainSubstring(text)))
	}
}

func TestTable(t *testing.T) {
	of := func(p phase, writes int64, server, etcd, detector time.Duration) result {
		return result{phase: p, measured: 10 * time.Second, writes: writes, server: server, etcd: etcd, detector: detector, words: "storms on 1 objects"}
	}
	text := table([]result{
		of(phases[0], 0, time.Second, 500*time.Millisecond, 0), of(phases[1], 0, 1100*time.Millisecond, 500*time.Millisecond, 200*time.Millisecond),
		of(phases[2], 4000, 8*time.Second, 2*time.Second, 0), of(phases[3], 2000, 4200*time.Millisecond, time.Second, time.Second),
	}, options{duration: 10 * time.Second})
	g := NewWithT(t)
	g.Expect(text).To(MatchRegexp(`(?m)^ *400 +80\.0 +20\.0 +0\.0 .* storm$`))
	g.Expect(text).To(ContainSubstring("at rest: the detector takes 2.0 % of a core, kube-apiserver +1.0 % and etcd +0.0 %."))
	g.Expect(text).To(ContainSubstring("storm: the detector takes 10.0 % of a core, 10.0 % of what kube-apiserver and etcd take without it; per write these two take +4.0 %."))
}

// TestAllPhasesAreMeasured looks at the form of the table only: the figures depend on the machine.
func TestAllPhasesAreMeasured(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	g := NewWithT(t)
	ctrl.SetLogger(logr.Discard())
	var out bytes.Buffer
	err := run(t.Context(), options{duration: time.Second, rate: 20, workers: 2, rounds: 1}, &out)
	g.Expect(err).NotTo(HaveOccurred(), out.String())
	for _, p := range phases {
		g.Expect(out.String()).To(MatchRegexp(`(?m)^ *\d+( +\d+\.\d){3} .* %s$`, p.name))
	}
}
