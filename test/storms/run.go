package storms

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/rest"
)

// Options of a run; every zero value stands for its default.
type Options struct {
	// Rate of the requests per second. Default that of the storm. A slow API server makes it lower: one request is sent at a time.
	Rate float64
	// Namespace of the objects. Default storm- and the name of the storm.
	Namespace string
	// OnRequest is called after each request of the storm.
	OnRequest func()
}

// cleanUpTimeout bounds the cleaning up, which goes on when ctx is done.
const cleanUpTimeout = time.Minute

// Run makes a storm until ctx is done, and returns nil then. Before it makes the namespace and the objects, and afterwards it
// deletes them; a namespace that was there already stays. An error is one of a request that the storm does not expect. Install
// must have been called. Runs of different storms, or in different namespaces, may go on at the same time.
func (s Storm) Run(ctx context.Context, config *rest.Config, o Options) (err error) {
	if o.Rate == 0 {
		o.Rate = s.Rate
	}
	if o.Namespace == "" {
		o.Namespace = "storm-" + s.Name
	}
	place, err := newSite(config, o.Namespace, s)
	if err != nil {
		return fmt.Errorf("storm %s: %w", s.Name, err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
		defer cancel()
		if failed := place.cleanUp(ctx); failed != nil {
			err = errors.Join(err, fmt.Errorf("clean up after storm %s: %w", s.Name, failed))
		}
	}()
	if err := s.blow(ctx, place, o); err != nil && ctx.Err() == nil {
		return fmt.Errorf("storm %s: %w", s.Name, err)
	}
	return nil
}

func (s Storm) blow(ctx context.Context, place *site, o Options) error {
	if err := place.setUp(ctx); err != nil {
		return err
	}
	next, err := s.start(ctx, place)
	if err != nil {
		return err
	}
	limiter := rate.NewLimiter(rate.Limit(o.Rate), 1)
	for limiter.Wait(ctx) == nil { // which fails only because of ctx
		if err := next(ctx); err != nil {
			return err
		}
		if o.OnRequest != nil {
			o.OnRequest()
		}
	}
	return nil
}
