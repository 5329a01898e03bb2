package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/hduolab/quell/controller/app"
	"github.com/hduolab/quell/test/bench/figures"
	"github.com/hduolab/quell/test/checkout"
	"github.com/hduolab/quell/test/localcluster"
	"k8s.io/apimachinery/pkg/runtime"
)

// samples is how many times memory is looked at during the rest, each after a garbage collection.
const samples = 20

// Options say what to measure.
type Options struct {
	// Sizes are the numbers of Apps, each on a fresh cluster.
	Sizes []int
	// Foreign adds two runs with so many Deployments that belong to nobody: without Apps and with the first size of them. 0 adds none.
	Foreign int
	// Rest is how long the restarted operator is watched; without Apps, and beside foreign Deployments, a tenth of it is.
	Rest time.Duration
	// Timeout bounds each wait, for all Apps to be Ready and for the operator to have nothing left to do; 0 means three hours.
	Timeout time.Duration
	// Keep is given the figures after each run, for the largest take long; nil keeps none before the end.
	Keep func(figures.Scale) error
	// Profiles is a folder for the heap profiles of the restarted operator, one for each run; "" keeps none.
	Profiles string
}

// Run measures each size in turn. It tells its steps to progress. An error, of Keep too, comes with the figures of the runs before.
func Run(ctx context.Context, o Options, progress io.Writer) (figures.Scale, error) {
	if o.Timeout == 0 {
		o.Timeout = 3 * time.Hour
	}
	if o.Keep == nil {
		o.Keep = func(figures.Scale) error { return nil }
	}
	dir, err := os.MkdirTemp("", "quell-scale-")
	if err != nil {
		return figures.Scale{}, err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "manager")
	if err := checkout.Build(ctx, "manager", program); err != nil {
		return figures.Scale{}, err
	}
	result := figures.Scale{}
	if result.Machine, err = figures.Here(); err != nil {
		return figures.Scale{}, err
	}
	for _, size := range o.runs() {
		r := &run{Options: o, size: size, program: program, dir: dir, progress: progress}
		measured, err := r.measure(ctx)
		if err != nil {
			return result, fmt.Errorf("%d Apps, %d foreign Deployments: %w", size.apps, size.foreign, err)
		}
		result.Runs = append(result.Runs, measured)
		if err := o.Keep(result); err != nil {
			return result, err
		}
	}
	return result, nil
}

type size struct{ apps, foreign int }

func (o Options) runs() []size {
	all := []size{{0, 0}} // what the others are compared with
	if o.Foreign > 0 {
		all = append(all, size{0, o.Foreign})
		if len(o.Sizes) > 0 {
			all = append(all, size{o.Sizes[0], o.Foreign})
		}
	}
	for _, n := range o.Sizes {
		all = append(all, size{n, 0})
	}
	return all
}

// run is one size on a cluster of its own.
type run struct {
	Options
	size
	program, dir string
	progress     io.Writer
	cluster      *localcluster.Cluster
}

func (r *run) say(format string, args ...any) {
	fmt.Fprintf(r.progress, "%s %6d Apps, %6d foreign: %s\n", time.Now().Format(time.TimeOnly), r.apps, r.foreign, fmt.Sprintf(format, args...))
}

func (r *run) measure(ctx context.Context) (measured figures.ScaleRun, err error) {
	measured = figures.ScaleRun{Apps: r.apps, Foreign: r.foreign}
	r.cluster, err = localcluster.Start(ctx, localcluster.Options{ControlPlaneOnly: true})
	if err != nil {
		return measured, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer func() { stop(); err = errors.Join(err, r.cluster.Stop()) }()
	w, err := r.prepare(ctx)
	if err != nil {
		return measured, err
	}
	first, err := startOperator(r)
	if err != nil {
		return measured, err
	}
	defer first.kill()
	measured.Create, err = r.create(ctx, w, first)
	if err != nil {
		return measured, fmt.Errorf("until all are Ready: %w; the operator's last words:\n%s", err, first.tail())
	}
	r.say("Ready after %.0f s: %s", measured.Create.Seconds, summary(measured.Create))
	first.kill()
	second, err := startOperator(r)
	if err != nil {
		return measured, err
	}
	defer second.kill()
	if measured.Restart, err = r.restart(ctx, second); err != nil {
		return measured, fmt.Errorf("after the restart: %w; the operator's last words:\n%s", err, second.tail())
	}
	r.say("restarted in %.0f s: %s", measured.Restart.Seconds, summary(measured.Restart))
	if measured.Rest, measured.Memory, err = r.rest(ctx, second); err != nil {
		return measured, fmt.Errorf("at rest: %w", err)
	}
	r.say("rested for %.0f s: %s", measured.Rest.Seconds, summary(measured.Rest))
	return measured, r.profile(ctx, second)
}

func summary(l figures.Load) string {
	return fmt.Sprintf("%d writes, %v; CPU %.1f s, API server and etcd %.1f s; heap %.1f MiB, resident %.1f MiB",
		l.Writes, l.Verbs, l.CPU, l.APIServer, float64(l.Heap)/(1<<20), float64(l.Resident)/(1<<20))
}

// prepare installs the CustomResourceDefinitions and what is there before the operator, and starts what stands for
// Kubernetes' own Deployment controller.
func (r *run) prepare(ctx context.Context) (*world, error) {
	if err := checkout.InstallDefinitions(ctx, r.cluster.Config()); err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := app.AddToScheme(scheme); err != nil {
		return nil, err
	}
	w, err := startWorld(ctx, r.cluster.Config(), scheme)
	if err != nil {
		return nil, err
	}
	return w, w.makeForeign(ctx, r.foreign)
}

// create measures until all Apps are Ready; what is sent after that, until nothing is left to do, counts too, but not to the time.
func (r *run) create(ctx context.Context, w *world, o *operator) (figures.Load, error) {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	if err := w.makeApps(ctx, r.apps); err != nil {
		return figures.Load{}, err
	}
	r.say("created after %.0f s, %d are Ready", time.Since(o.born.at).Seconds(), w.ready())
	if err := w.allReady(ctx, r.apps, o.ended); err != nil {
		return figures.Load{}, err
	}
	ready := time.Now()
	if _, err := r.quiet(ctx, o); err != nil {
		return figures.Load{}, err
	}
	return r.end(ctx, o, o.born, ready)
}

func (r *run) restart(ctx context.Context, o *operator) (figures.Load, error) {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	quiet, err := r.quiet(ctx, o)
	if err != nil {
		return figures.Load{}, err
	}
	return r.end(ctx, o, o.born, quiet)
}

// rest measures while nothing happens. The samples of memory cost processor time too, a garbage collection each.
func (r *run) rest(ctx context.Context, o *operator) (figures.Load, []figures.MemorySample, error) {
	since, err := r.now(o.cmd.Process.Pid)
	if err != nil {
		return figures.Load{}, nil, err
	}
	total := r.Rest
	if r.apps == 0 || r.foreign > 0 {
		total /= 10
	}
	var memory []figures.MemorySample
	for i := range samples + 1 {
		if err := pause(ctx, time.Until(since.at.Add(total*time.Duration(i)/samples)), o.ended); err != nil {
			return figures.Load{}, nil, err
		}
		m, err := o.memory(ctx)
		if err != nil {
			return figures.Load{}, nil, err
		}
		m.After = time.Since(since.at)
		memory = append(memory, m)
	}
	load, err := r.end(ctx, o, since, time.Now())
	return load, memory, err
}

// profile keeps a heap profile for go tool pprof.
func (r *run) profile(ctx context.Context, o *operator) error {
	if r.Profiles == "" {
		return nil
	}
	raw, err := o.get(ctx, o.profiler, "/debug/pprof/heap?gc=1")
	if err != nil {
		return fmt.Errorf("profile the heap: %w", err)
	}
	return os.WriteFile(filepath.Join(r.Profiles, fmt.Sprintf("heap-%d-%d.pb.gz", r.apps, r.foreign)), raw, 0o644)
}

// pause fails when the operator ends.
func pause(ctx context.Context, d time.Duration, ended <-chan struct{}) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-ended:
		return errors.New("the operator ended by itself")
	case <-time.After(d):
		return nil
	}
}
