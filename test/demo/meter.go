package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hduolab/quell/test/localcluster"
)

// step is the time between two measurements.
const step = time.Second

// sample is what happened between two measurements.
type sample struct {
	from, to time.Time
	// writes are those of the operator that the API server answered.
	writes int
	// cpu is the processor time of API server and etcd.
	cpu time.Duration
}

// meter measures all the time. Safe for concurrent use.
type meter struct {
	cluster  *localcluster.Cluster
	hasUsage bool // false where processor times cannot be read

	mu      sync.Mutex
	mark    localcluster.Mark
	last    time.Time
	spent   time.Duration
	samples []sample
}

// newMeter returns one that measures from now on.
func newMeter(cluster *localcluster.Cluster, hasUsage bool) (*meter, error) {
	m := &meter{cluster: cluster, hasUsage: hasUsage, last: time.Now()}
	var err error
	if m.mark, err = cluster.Mark(); err != nil {
		return nil, err
	}
	m.spent, err = m.cpuTime()
	return m, err
}

func (m *meter) cpuTime() (time.Duration, error) {
	if !m.hasUsage {
		return 0, nil
	}
	return m.cluster.CPUTime(localcluster.APIServer, localcluster.Etcd)
}

// run measures until ctx is done, and calls told after each time.
func (m *meter) run(ctx context.Context, told func()) error {
	ticker := time.NewTicker(step)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if _, err := m.take(); err != nil {
			return err
		}
		told()
	}
}

// take measures now, and returns when that was: what is counted before and after it falls into different samples.
func (m *meter) take() (time.Time, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	requests, mark, err := m.cluster.Next(m.mark, localcluster.ByUserAgent(agent), localcluster.Writes)
	if err != nil {
		return m.last, err
	}
	spent, err := m.cpuTime()
	if err != nil {
		return m.last, err
	}
	now := time.Now()
	m.samples = append(m.samples, sample{m.last, now, len(requests), spent - m.spent})
	m.mark, m.last, m.spent = mark, now, spent
	return now, nil
}

// all returns what was measured so far.
func (m *meter) all() samples {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.samples[:len(m.samples):len(m.samples)]
}

// samples follow each other without a gap.
type samples []sample

func (s samples) from() time.Time { return s[0].from }
func (s samples) to() time.Time   { return s[len(s)-1].to }

func (s samples) writes() int {
	sum := 0
	for _, one := range s {
		sum += one.writes
	}
	return sum
}

// between are the samples that lie in a time.
func (s samples) between(from, to time.Time) samples {
	var found samples
	for _, one := range s {
		if !one.from.Before(from) && !one.to.After(to) {
			found = append(found, one)
		}
	}
	return found
}

func (s samples) rate() float64  { return s.perSecond(writesOf) }
func (s samples) cores() float64 { return s.perSecond(cpuOf) }

func (s samples) perSecond(amount func(sample) float64) float64 {
	if len(s) == 0 {
		return 0
	}
	sum := 0.0
	for _, one := range s {
		sum += amount(one)
	}
	return sum / s.to().Sub(s.from()).Seconds()
}

func writesOf(s sample) float64 { return float64(s.writes) }
func cpuOf(s sample) float64    { return s.cpu.Seconds() }

// series spreads the samples over whole steps of a second, in amounts per second. What is left in the end is not shown.
func (s samples) series(amount func(sample) float64) []float64 {
	if len(s) == 0 {
		return nil
	}
	values := make([]float64, int(s.to().Sub(s.from())/step))
	for _, one := range s {
		for i := range values {
			from := s.from().Add(time.Duration(i) * step)
			if share := overlap(one, from, from.Add(step)); share > 0 {
				values[i] += amount(one) * share / step.Seconds()
			}
		}
	}
	return values
}

// overlap is the part of a sample that lies in a time.
func overlap(s sample, from, to time.Time) float64 {
	length := s.to.Sub(s.from)
	if s.from.After(from) {
		from = s.from
	}
	if s.to.Before(to) {
		to = s.to
	}
	if length <= 0 || !to.After(from) {
		return 0
	}
	return to.Sub(from).Seconds() / length.Seconds()
}

func number(v float64) string {
	if v >= 100 || v == 0 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}
