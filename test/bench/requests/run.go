package requests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/hduolab/quell/test/bench/figures"
	"github.com/hduolab/quell/test/bench/rivals"
	"github.com/hduolab/quell/test/localcluster"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options say how long a run takes. A field that is zero has its default.
type Options struct {
	// Contestants default to all rivals and Quell.
	Contestants []rivals.Rival
	// Flaps is how often the Deployment's condition Available changes in the phase of that name (100), FlapEvery how fast (100 ms).
	Flaps     int
	FlapEvery time.Duration
	// Step is the least time between two steps of a rollout (1 s), and for how long the contestant must have sent nothing before the
	// next one; five times Step is the most.
	Step time.Duration
	// Quiet is for how long nothing may have been sent for a phase to be over (3 s).
	Quiet time.Duration
	// Limit is for how long a contestant has to go on sending, without such a pause, to be called endless (10 s).
	Limit time.Duration
	// Patience is how long a contestant that is quiet may take to show or heal what it did not at first (45 s).
	Patience time.Duration
}

func (o Options) orDefault() Options {
	if o.Contestants == nil {
		o.Contestants = append(rivals.All(), rivals.Quell())
	}
	o.Flaps = cmp.Or(o.Flaps, 100)
	o.FlapEvery = cmp.Or(o.FlapEvery, 100*time.Millisecond)
	o.Step = cmp.Or(o.Step, time.Second)
	o.Quiet = cmp.Or(o.Quiet, 3*time.Second)
	o.Limit = cmp.Or(o.Limit, 10*time.Second)
	o.Patience = cmp.Or(o.Patience, 45*time.Second)
	return o
}

const (
	// benchmarkAgent is the user agent of the benchmark, contestantAgent the beginning of a contestant's.
	benchmarkAgent  = "benchmark"
	contestantAgent = "contestant-"
)

// auditPolicy logs, beside all requests, the answers to the writes that are counted, for the resourceVersion in them.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: RequestResponse
  verbs: [create, update, patch, delete]
  resources:
  - group: quell.dev
  - group: apps
- level: Metadata
`

// Run starts a control plane, lets one contestant after the other run through the phases, and stops it. A line for each
// phase goes to progress.
func Run(ctx context.Context, o Options, progress io.Writer) (result figures.Requests, err error) {
	o = o.orDefault()
	folder, err := os.MkdirTemp("", "quell-requests-")
	if err != nil {
		return figures.Requests{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	policy := filepath.Join(folder, "policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return figures.Requests{}, fmt.Errorf("write the audit policy: %w", err)
	}
	cluster, err := localcluster.Start(ctx, localcluster.Options{
		ControlPlaneOnly: true, APIServerArgs: []string{"--audit-policy-file=" + policy}, Log: progress,
	})
	if err != nil {
		return figures.Requests{}, err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	config := cluster.Config()
	config.UserAgent = benchmarkAgent
	user, err := rivals.Install(ctx, config)
	if err != nil {
		return figures.Requests{}, err
	}
	return lives(ctx, o, cluster, user, progress)
}

func lives(ctx context.Context, o Options, cluster *localcluster.Cluster, user client.Client, progress io.Writer) (figures.Requests, error) {
	machine, err := figures.Here()
	if err != nil {
		return figures.Requests{}, err
	}
	result := figures.Requests{Machine: machine}
	for _, p := range phases(o) {
		result.Phases = append(result.Phases, p.Phase)
	}
	for _, contestant := range o.Contestants {
		rows, err := live(ctx, o, contestant, cluster, user, progress)
		if err != nil {
			return figures.Requests{}, fmt.Errorf("%s: %w", contestant.Name, err)
		}
		result.Rows = append(result.Rows, rows...)
	}
	return result, nil
}
