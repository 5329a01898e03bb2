package quiescence

import (
	"context"
	"fmt"
	"time"

	"github.com/hduolab/quell/controller/storm/live"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Check waits until no object of the given kinds has been written for Options.Settle, and then wants none to be written for
// Options.Hold. A *NotQuiet error says who wrote what; any other error says why that could not be seen: a kind that is not served, a
// missing right to list and watch, ctx done. It only reads, and leaves nothing running.
func Check(ctx context.Context, config *rest.Config, options Options) error {
	o := options.withDefaults()
	if err := o.validate(); err != nil {
		return err
	}
	resources, err := discover(ctx, config, o)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("quiescence: connect to the cluster: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	r := newRecord(o.Ignore)
	w := watches{client: client, record: r}
	defer w.wait()
	defer cancel()
	if err := w.start(ctx, resources, o.Namespaces); err != nil {
		return err
	}
	if err := settle(ctx, r, o); err != nil {
		return err
	}
	return hold(ctx, r, o, w.catchUp)
}

func discover(ctx context.Context, config *rest.Config, o Options) ([]live.Resource, error) {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("quiescence: connect to the cluster: %w", err)
	}
	m, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("quiescence: connect to the cluster: %w", err)
	}
	resources, missing, err := live.Discover(ctx, d, m, live.Selector{Kinds: o.Kinds})
	// A part of the API that cannot be discovered is no hindrance as long as all kinds were found.
	switch {
	case len(missing) > 0 && err != nil, len(resources) == 0 && err != nil:
		return nil, fmt.Errorf("quiescence: %w", err)
	case len(missing) > 0:
		return nil, fmt.Errorf("quiescence: no resource of kind %s can be watched", missing[0].GroupKind)
	}
	return resources, nil
}

// settle returns once nothing has been written for a while.
func settle(ctx context.Context, r *record, o Options) error {
	began := time.Now()
	for {
		quiet, waited := r.quiet(began, o.Settle), time.Since(began)
		switch {
		case quiet >= o.Settle:
			return nil
		case waited >= o.Patience:
			return r.error(fmt.Sprintf("never quiet for %s within %s", o.Settle, o.Patience))
		}
		if err := pause(ctx, r, min(o.Settle-quiet, o.Patience-waited)); err != nil {
			return err
		}
	}
}

// afterthought is for how long further writes are collected once there was one: enough for a verdict.
const afterthought = 6 * time.Second

// hold wants no write since settle. At the first one it goes on for a little, so that what follows is told too; without any it
// wants to be sure that none was missed.
func hold(ctx context.Context, r *record, o Options, catchUp func(context.Context) error) error {
	began := time.Now()
	for end := began.Add(o.Hold); time.Now().Before(end); {
		if err := pause(ctx, r, time.Until(end)); err != nil {
			return err
		}
		if first := r.first(); !first.IsZero() && first.Add(afterthought).Before(end) {
			end = first.Add(afterthought)
		}
	}
	if r.first().IsZero() {
		if err := catchUp(ctx); err != nil || r.first().IsZero() {
			return err
		}
	}
	return r.error(fmt.Sprintf("quiet for %s, then written again", (o.Settle + r.first().Sub(began)).Round(time.Millisecond)))
}

// pause waits for a write, but not longer than d.
func pause(ctx context.Context, r *record, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("quiescence: %w", context.Cause(ctx))
	case <-r.wake:
	case <-timer.C:
	}
	return nil
}
