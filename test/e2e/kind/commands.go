package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// test creates a cluster, runs the suite in it, and deletes it.
func test(ctx context.Context, o options) (err error) {
	s, err := begin(ctx, o)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			s.collect(ctx)
		}
		err = errors.Join(err, s.finish(ctx))
		s.say("took %s", strings.Join(s.times, ", "))
	}()
	if err := s.start(ctx, true); err != nil {
		return err
	}
	return s.take(ctx, step{"running test/e2e", s.runSuite})
}

// start makes a cluster in which the operator runs, and for the suite also has the image that its Apps run.
func (s *session) start(ctx context.Context, forSuite bool) error {
	// The cluster comes first: its nodes' image may be missing.
	images, steps := []string{managerImage}, []step{{"creating the cluster " + s.name, s.createCluster}, {"building the operator's image", s.buildManager}}
	if forSuite {
		images = append(images, serverImage, nextServerImage)
		steps = append(steps, step{"building what Apps run", s.buildServer})
	}
	steps = append(steps,
		step{"loading the images", func(ctx context.Context) error { return s.load(ctx, images...) }},
		step{"installing the operator", s.install},
	)
	for _, next := range steps {
		if err := s.take(ctx, next); err != nil {
			return err
		}
	}
	return nil
}

// up makes a cluster for people. What was made stays only when all went well.
func up(ctx context.Context, o options) error {
	s, err := begin(ctx, o)
	if err != nil {
		return err
	}
	temporary := s.dir
	s.kubeconfig = filepath.Join(s.root, "bin", s.name+".kubeconfig")
	defer func() { _ = os.RemoveAll(temporary) }() // nothing in it is needed any more
	if err := os.MkdirAll(filepath.Dir(s.kubeconfig), 0o755); err != nil {
		return err
	}
	if err := s.start(ctx, false); err != nil {
		s.keep = false
		return errors.Join(err, s.finish(ctx))
	}
	return s.finish(ctx)
}

// down deletes the cluster of up. It is no error when there is none.
func down(ctx context.Context, o options) error {
	s, err := begin(ctx, o)
	if err != nil {
		return err
	}
	s.kubeconfig = filepath.Join(s.root, "bin", s.name+".kubeconfig")
	return errors.Join(s.deleteCluster(ctx), os.RemoveAll(s.kubeconfig), s.removeFiles())
}
