package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"time"

	"github.com/hduolab/quell/test/localcluster"
	"github.com/hduolab/quell/test/program"
	"github.com/hduolab/quell/test/storms"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// phase is one of those that are measured in turn.
type phase struct {
	name                string
	isStorm, isDetected bool
}

var phases = []phase{
	{"at rest", false, false}, {"at rest, with the detector", false, true},
	{"storm", true, false}, {"storm, with the detector", true, true},
}

// result is what one phase cost.
type result struct {
	phase
	measured time.Duration
	writes   int64
	// Processor time of each.
	server, etcd, detector time.Duration
	// words are the detector's last ones.
	words string
}

func run(ctx context.Context, o options, out io.Writer) (err error) {
	cluster, err := localcluster.Start(ctx, localcluster.Options{ControlPlaneOnly: true, Log: out})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	if err := prepare(ctx, cluster, o); err != nil {
		return err
	}
	var results []result
	for round := range o.rounds {
		for _, p := range phases {
			fmt.Fprintf(out, "round %d of %d, measuring for %s: %s\n", round+1, o.rounds, o.duration, p.name)
			r, err := measure(ctx, cluster, p, o)
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			results = append(results, r)
		}
	}
	fmt.Fprintf(out, "\n%s", table(results, o))
	return nil
}

// prepare makes the namespaces too: without controllers one that a storm makes for itself is never gone.
func prepare(ctx context.Context, cluster *localcluster.Cluster, o options) error {
	client, err := kubernetes.NewForConfig(cluster.Config())
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	for i := range o.workers {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace(i)}}
		if _, err := client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create namespace %s: %w", ns.Name, err)
		}
	}
	return storms.Install(cluster.Config())
}

func namespace(worker int) string { return fmt.Sprintf("storm-cost-%d", worker) }

func measure(ctx context.Context, cluster *localcluster.Cluster, p phase, o options) (r result, err error) {
	r.phase = p
	var writes atomic.Int64
	blowing, calm := context.WithCancel(ctx)
	group, blowing := errgroup.WithContext(blowing)
	defer func() {
		calm()
		if failed := group.Wait(); failed != nil { // which is why anything else failed
			err = failed
		}
	}()
	if p.isStorm {
		blow(blowing, group, cluster, o, &writes)
	}
	var d *detector
	if p.isDetected {
		if d, err = startDetector(ctx, cluster); err != nil {
			return r, err
		}
		defer func() {
			var failed error
			r.words, failed = d.stop()
			err = errors.Join(err, failed)
		}()
	}
	if err := program.Pause(blowing, o.settle); err != nil {
		return r, err
	}
	return r, r.count(blowing, cluster, d, o, &writes)
}

// count takes the differences over one phase.
func (r *result) count(ctx context.Context, cluster *localcluster.Cluster, d *detector, o options, writes *atomic.Int64) error {
	before, err := usage(cluster, d)
	if err != nil {
		return err
	}
	started, sent := time.Now(), writes.Load()
	if err := program.Pause(ctx, o.duration); err != nil {
		return err
	}
	after, err := usage(cluster, d)
	if err != nil {
		return err
	}
	r.measured, r.writes = time.Since(started), writes.Load()-sent
	r.server, r.etcd, r.detector = after.server-before.server, after.etcd-before.etcd, after.detector-before.detector
	return nil
}

// blow starts the storm: each worker stamps the time into an object of its own.
func blow(ctx context.Context, group *errgroup.Group, cluster *localcluster.Cluster, o options, writes *atomic.Int64) {
	for i := range o.workers {
		group.Go(func() error {
			s, err := storms.Find("subsecond-timestamp")
			if err != nil {
				return err
			}
			return s.Run(ctx, cluster.Config(), storms.Options{
				Rate: o.rate / float64(o.workers), Namespace: namespace(i), OnRequest: func() { writes.Add(1) },
			})
		})
	}
}

// detector is the process that is measured.
type detector struct {
	cmd   *exec.Cmd
	input io.Closer
	lines *bufio.Scanner
}

// startDetector returns when it watches everything.
func startDetector(ctx context.Context, cluster *localcluster.Cluster) (*detector, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.CommandContext(ctx, program, "detect", "--kubeconfig="+cluster.Kubeconfig())
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the detector: %w", err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the detector: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the detector: %w", err)
	}
	d := &detector{cmd, input, bufio.NewScanner(output)}
	if !d.lines.Scan() { // it watches
		_, err := d.stop()
		return nil, errors.Join(errors.New("the detector ended by itself"), err)
	}
	return d, nil
}

// stop ends the detector and returns its last words.
func (d *detector) stop() (words string, err error) {
	if err := d.input.Close(); err != nil {
		return "", fmt.Errorf("stop the detector: %w", err)
	}
	for d.lines.Scan() {
		words = d.lines.Text()
	}
	if err := d.cmd.Wait(); err != nil {
		return words, fmt.Errorf("the detector: %w", err)
	}
	return words, nil
}
