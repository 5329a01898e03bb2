package main

import (
	"fmt"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// table shows each phase, and then the means of all rounds against each other.
func table(results []result, o options) string {
	var text strings.Builder
	fmt.Fprintf(&text, "Processor time in percent of one of %d cores, over %s each:\n\n", runtime.NumCPU(), o.duration)
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "WRITES/S\tKUBE-APISERVER\tETCD\tDETECTOR\tIT SAYS\t PHASE")
	for _, r := range results {
		fmt.Fprintf(w, "%.0f\t%.1f\t%.1f\t%.1f\t%s\t %s\n", r.rate(), r.percent(r.server), r.percent(r.etcd), r.percent(r.detector), r.words, r.name)
	}
	w.Flush()
	for _, isStorm := range []bool{false, true} {
		fmt.Fprintf(&text, "\n%s", comparison(mean(results, isStorm, false), mean(results, isStorm, true)))
	}
	return text.String()
}

func (r result) rate() float64                   { return float64(r.writes) / r.measured.Seconds() }
func (r result) percent(d time.Duration) float64 { return 100 * d.Seconds() / r.measured.Seconds() }

// mean is the sum of all rounds of a phase, which is as good for quotients.
func mean(results []result, isStorm, isDetected bool) result {
	var sum result
	for _, r := range results {
		if r.isStorm == isStorm && r.isDetected == isDetected {
			sum.phase = r.phase
			sum.measured += r.measured
			sum.writes += r.writes
			sum.server += r.server
			sum.etcd += r.etcd
			sum.detector += r.detector
		}
	}
	return sum
}

// comparison says what the detector adds. In a storm that is per write: the cores are shared, and who is slower writes less.
func comparison(without, with result) string {
	own := with.percent(with.detector)
	if without.writes == 0 || with.writes == 0 {
		return fmt.Sprintf("%s: the detector takes %.1f %% of a core, kube-apiserver %+.1f %% and etcd %+.1f %%.\n", without.name, own,
			with.percent(with.server)-without.percent(without.server), with.percent(with.etcd)-without.percent(without.etcd))
	}
	load := without.server + without.etcd
	return fmt.Sprintf("%s: the detector takes %.1f %% of a core, %.1f %% of what kube-apiserver and etcd take without it; per write these two take %+.1f %%.\n",
		without.name, own, 100*own/without.percent(load), 100*(with.perWrite()/without.perWrite()-1))
}

// perWrite is what a write costs the API server and etcd, in seconds.
func (r result) perWrite() float64 { return (r.server + r.etcd).Seconds() / float64(r.writes) }
