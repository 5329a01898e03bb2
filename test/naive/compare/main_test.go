package main

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/hduolab/quell/test/localcluster"
	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestParseRefuses(t *testing.T) {
	tests := map[string]struct{ arg, want string }{
		"no objects":        {"--objects=1,0", "--objects must be at least 1"},
		"an empty list":     {"--objects=", "invalid argument"},
		"a word":            {"--objects=many", "invalid argument"},
		"no workers":        {"--workers=0", "--workers must be at least 1"},
		"no time":           {"--for=0s", "--for must be positive"},
		"a negative time":   {"--warm-up=-1s", "--warm-up not negative"},
		"a stray argument":  {"widgets", "unexpected argument"},
		"something unknown": {"--nope", "unknown flag"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parse([]string{test.arg})
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.want)))
		})
	}
}

func TestHelpIsNoError(t *testing.T) {
	_, err := parse([]string{"--help"})
	NewWithT(t).Expect(errors.Is(err, pflag.ErrHelp)).To(BeTrue())
}

func TestTable(t *testing.T) {
	results := []result{
		{name: "storm", objects: 2, first: 5, requests: 30, writes: 20, stored: 10, measured: 10 * time.Second},
		{name: statusWriter, objects: 2, first: 4, requests: 4, writes: 4, stored: 4, measured: 10 * time.Second},
		{name: "alone", objects: 3, measured: 10 * time.Second},
	}
	g := NewWithT(t)
	text := table(results, options{measure: 10 * time.Second, warmUp: 3 * time.Second})
	g.Expect(text).To(MatchRegexp(`(?m)^storm +2 +5 +3\.0 +20 +2\.0 +1\.00 +1\.0 +5\.0$`))
	g.Expect(text).To(MatchRegexp(`(?m)^the same on ssa\.StatusWriter +2 +4 +0\.4 +4 +0\.4 +0\.20 +0\.4 +1\.0$`))
	g.Expect(text).To(MatchRegexp(`(?m)^alone +3 +0 +0\.0 +0 +0\.0 +0\.00 +0\.0 +-$`))
}

func TestOnlyTheTimeMeasuredCounts(t *testing.T) {
	start := time.Now()
	at := func(d time.Duration, verb string) localcluster.Request {
		return localcluster.Request{Time: start.Add(d), Verb: verb}
	}
	var r result
	r.add([]localcluster.Request{
		at(-time.Second, "update"), at(-time.Second, "get"), at(0, "patch"), at(time.Second, "list"), at(2*time.Second, "patch"),
	}, start, start.Add(2*time.Second))
	NewWithT(t).Expect(r).To(Equal(result{first: 1, requests: 2, writes: 1}))
}

// TestAllOperatorsAreMeasured looks at the form of the table only: the figures depend on the machine.
func TestAllOperatorsAreMeasured(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	g := NewWithT(t)
	ctrl.SetLogger(logr.Discard())
	var out bytes.Buffer
	err := run(t.Context(), options{numbers: []int{2}, workers: 2, measure: time.Second}, &out)
	g.Expect(err).NotTo(HaveOccurred(), out.String())
	for _, c := range contestants() {
		g.Expect(out.String()).To(MatchRegexp(`(?m)^%s +2( +\d+(\.\d+)?){6} +(\d+\.\d|-)$`, c.name))
	}
}
