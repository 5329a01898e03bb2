package scale

import (
	"context"
	"fmt"
	"time"

	"github.com/hduolab/quell/test/bench/figures"
	"github.com/hduolab/quell/test/localcluster"
)

const (
	// stillFor is how long the operator must have done nothing to count as quiet: longer than a status is collected.
	stillFor = 4 * time.Second
	lookEach = 250 * time.Millisecond
)

// moment is the beginning of a measurement.
type moment struct {
	at   time.Time
	mark localcluster.Mark
	cpu  cpu
}

// now begins a measurement. pid is the operator's, 0 while it does not run.
func (r *run) now(pid int) (moment, error) {
	mark, err := r.cluster.Mark()
	if err != nil {
		return moment{}, err
	}
	used, err := r.usage(pid)
	return moment{at: time.Now(), mark: mark, cpu: used}, err
}

// end is the load since a moment, with the time until another.
func (r *run) end(ctx context.Context, o *operator, since moment, until time.Time) (figures.Load, error) {
	used, err := r.usage(o.cmd.Process.Pid)
	if err != nil {
		return figures.Load{}, err
	}
	load := figures.Load{
		Seconds: until.Sub(since.at).Seconds(), Verbs: map[string]int{},
		CPU: (used.operator - since.cpu.operator).Seconds(), APIServer: (used.server - since.cpu.server).Seconds(),
	}
	requests, err := r.cluster.Requests(since.mark, localcluster.ByUserAgent("manager/"))
	if err != nil {
		return figures.Load{}, err
	}
	for _, q := range requests {
		load.Verbs[what(q)]++
		if localcluster.Writes(q) {
			load.Writes++
		}
	}
	m, err := o.memory(ctx)
	load.Heap, load.Resident = m.Heap, m.Resident
	return load, err
}

// what is a request's verb and resource, as in "patch apps/status". Requests outside the resources have the one name "get other":
// these are discovery.
func what(q localcluster.Request) string {
	switch {
	case q.Resource == "":
		return q.Verb + " other"
	case q.Subresource == "":
		return q.Verb + " " + q.Resource
	}
	return q.Verb + " " + q.Resource + "/" + q.Subresource
}

// quiet waits until the operator has worked on every App, has nothing queued and does nothing more, and returns since when.
func (r *run) quiet(ctx context.Context, o *operator) (time.Time, error) {
	last, at := work{reconciles: -1}, time.Now()
	for time.Since(at) < stillFor {
		if err := pause(ctx, lookEach, o.ended); err != nil {
			return at, fmt.Errorf("wait for the operator to be quiet, last seen %+v: %w", last, err)
		}
		now, err := o.work(ctx)
		if err != nil { // it does not listen yet
			at = time.Now()
			continue
		}
		if now != last || now.queued+now.active > 0 || now.reconciles < float64(r.apps) {
			last, at = now, time.Now()
		}
	}
	return at, nil
}

// cpu is processor time since the start of each; server is that of API server and etcd.
type cpu struct{ operator, server time.Duration }

// usage reads processor times; pid is the operator's, 0 for none.
func (r *run) usage(pid int) (used cpu, err error) {
	if used.server, err = r.cluster.CPUTime(localcluster.APIServer, localcluster.Etcd); err != nil || pid == 0 {
		return used, err
	}
	used.operator, err = localcluster.CPUTime(pid)
	return used, err
}
