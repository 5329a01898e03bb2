package requests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/test/bench/figures"
	"github.com/hduolab/quell/test/bench/rivals"
	"github.com/hduolab/quell/test/localcluster"
	"github.com/hduolab/quell/test/program"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const pollEvery = 50 * time.Millisecond

// errNotYet is of a contestant that did not do what there was to do.
var errNotYet = errors.New("not within the patience of the run")

// life is the life of one App under one contestant.
type life struct {
	Options
	contestant rivals.Rival
	cluster    *localcluster.Cluster
	user       client.Client
	// key is that of the App and of its Deployment.
	key client.ObjectKey
	// mark is where the audit log is read from next, sent what was read of the phase.
	mark localcluster.Mark
	sent []localcluster.Request
	// known are the versions of objects that writes have answered with.
	known map[version]bool
	// stop ends the contestant as it runs and returns why it had ended before.
	stop func() error
}

// live runs all phases.
func live(
	ctx context.Context, o Options, contestant rivals.Rival, cluster *localcluster.Cluster, user client.Client, progress io.Writer,
) (rows []figures.RequestRow, err error) {
	l := &life{
		Options: o, contestant: contestant, cluster: cluster, user: user,
		key: client.ObjectKey{Namespace: contestant.Name, Name: "shop"}, known: map[version]bool{},
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.key.Namespace}}
	if err := user.Create(ctx, namespace); err != nil {
		return nil, fmt.Errorf("create the namespace: %w", err)
	}
	if err := l.start(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.stop()) }()
	if _, err := l.settle(ctx, func(context.Context) (string, error) { return "", nil }); err != nil { // the first lists
		return nil, err
	}
	for _, p := range phases(o) {
		row, err := l.run(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("phase %q: %w", p.Name, err)
		}
		fmt.Fprintf(progress, "%s, %s: %d writes, %d changes, %d refused, endless %t, missed %q, %v\n",
			row.Contestant, row.Phase, row.Writes, row.Changes, row.Refused, row.Endless, row.Missed, row.Verbs)
		rows = append(rows, row)
	}
	return rows, nil
}

// start runs the contestant anew.
func (l *life) start(ctx context.Context) error {
	config := l.cluster.Config()
	config.UserAgent = l.agent()
	_, stop, err := l.contestant.Start(ctx, config)
	if err == nil {
		l.stop = stop
	}
	return err
}

func (l *life) agent() string { return contestantAgent + l.contestant.Name + "/" }

// run runs one phase from the end of the one before.
func (l *life) run(ctx context.Context, p phase) (figures.RequestRow, error) {
	if _, err := l.read(); err != nil { // what a storm sent between the phases belongs to none
		return figures.RequestRow{}, err
	}
	l.count()
	began := time.Now()
	if err := p.act(ctx, l); err != nil {
		return figures.RequestRow{}, err
	}
	endless, err := l.settle(ctx, p.untold(l))
	if err != nil {
		return figures.RequestRow{}, err
	}
	row := l.count()
	row.Contestant, row.Phase, row.Endless = l.contestant.Name, p.Name, endless
	row.Seconds = time.Since(began).Round(time.Millisecond).Seconds()
	row.Missed, err = p.untold(l)(ctx)
	return row, err
}

// settle returns when the contestant has been quiet and nothing is untold any more, when the patience for that is over, or, with
// true, when it does not become quiet.
func (l *life) settle(ctx context.Context, untold func(context.Context) (string, error)) (endless bool, err error) {
	began := time.Now()
	last, busy := began, began // the last request, and the first one since it was quiet
	for {
		more, err := l.read()
		if err != nil {
			return false, err
		}
		now := time.Now()
		if more && now.Sub(last) >= l.Quiet {
			busy = now
		}
		if more {
			last = now
		}
		if now.Sub(last) >= l.Quiet {
			what, err := untold(ctx)
			if err != nil || what == "" || now.Sub(began) >= l.Patience {
				return false, err
			}
		} else if now.Sub(busy) >= l.Limit {
			return true, nil
		}
		if err := program.Pause(ctx, pollEvery); err != nil {
			return false, err
		}
	}
}

// step lets the contestant deal with a step of the Deployment's.
func (l *life) step(ctx context.Context) error {
	began := time.Now()
	last := began
	for {
		more, err := l.read()
		if err != nil {
			return err
		}
		now := time.Now()
		if more {
			last = now
		}
		if now.Sub(last) >= l.Step || now.Sub(began) >= 5*l.Step {
			return nil
		}
		if err := program.Pause(ctx, pollEvery); err != nil {
			return err
		}
	}
}

// await returns when a condition holds, and an error when it does not within the patience.
func (l *life) await(ctx context.Context, what string, holds func(*quellv1alpha1.App, *appsv1.Deployment) bool) error {
	for began := time.Now(); ; {
		app, deployment, err := l.objects(ctx)
		if err != nil {
			return err
		}
		if holds(app, deployment) {
			return nil
		}
		if time.Since(began) >= l.Patience {
			return fmt.Errorf("%w: %s", errNotYet, what)
		}
		if err := program.Pause(ctx, pollEvery); err != nil {
			return err
		}
	}
}

// objects are the App and its Deployment; one that does not exist has no UID.
func (l *life) objects(ctx context.Context) (*quellv1alpha1.App, *appsv1.Deployment, error) {
	app, deployment := &quellv1alpha1.App{}, &appsv1.Deployment{}
	if err := l.user.Get(ctx, l.key, app); client.IgnoreNotFound(err) != nil {
		return nil, nil, fmt.Errorf("read the App: %w", err)
	}
	if err := l.user.Get(ctx, l.key, deployment); client.IgnoreNotFound(err) != nil {
		return nil, nil, fmt.Errorf("read the Deployment: %w", err)
	}
	return app, deployment, nil
}
