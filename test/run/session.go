package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/test/checkout"
)

// session is everything that one run works with.
type session struct {
	options
	*progress
	root    string // of the checkout
	cluster *cluster
	manager *manager
	app     *quellv1alpha1.App // as it was seen last
	// fail ends the session because something ended by itself.
	fail context.CancelCauseFunc
	ends []func() error
}

// run does it all and stops what it started, in the opposite order. It returns nil when ctx ends after the App was Ready.
func run(ctx context.Context, o options, out io.Writer) (err error) {
	inner, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	s := &session{options: o, fail: fail}
	steps := []func(context.Context) error{s.reachCluster, s.install, s.startManager, s.applySample, s.report}
	s.progress = newProgress(out, len(steps))
	defer func() { err = errors.Join(err, s.end()) }()
	if err := s.prepare(ctx); err != nil {
		return err
	}
	if err := take(inner, steps); err != nil || o.once {
		return err
	}
	<-inner.Done()
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(inner)
}

// take takes the steps. When ctx ended meanwhile, that is the error: what the step says only follows from it.
func take(ctx context.Context, steps []func(context.Context) error) error {
	for _, step := range steps {
		if err := step(ctx); err != nil && ctx.Err() != nil {
			return fmt.Errorf("ended before the App was Ready: %w", context.Cause(ctx))
		} else if err != nil {
			return err
		}
	}
	return nil
}

// atEnd has f called when the session ends, before what was registered earlier.
func (s *session) atEnd(f func() error) { s.ends = append(s.ends, f) }

func (s *session) stopAtEnd(what string, stop func() error) {
	s.atEnd(func() error {
		s.say("stopping %s", what)
		if err := stop(); err != nil {
			return err
		}
		s.say("stopped %s", what)
		return nil
	})
}

func (s *session) end() (err error) {
	for _, f := range slices.Backward(s.ends) {
		err = errors.Join(err, f())
	}
	return err
}

func (s *session) prepare(ctx context.Context) (err error) {
	if s.root, err = checkout.Find(ctx); err != nil {
		return err
	}
	if s.sample == "" {
		s.sample = filepath.Join(s.root, "config/samples/app.yaml")
	}
	return nil
}
