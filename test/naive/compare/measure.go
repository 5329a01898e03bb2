package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hduolab/quell/test/localcluster"
	"github.com/hduolab/quell/test/program"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	agent         = "contestant/" // the user agent of the operator that is measured
	pollEvery     = 200 * time.Millisecond
	settleTimeout = 5 * time.Minute
)

// round measures one operator on a number of objects.
type round struct {
	contestant
	options
	objects int
	cluster *localcluster.Cluster
	user    client.WithWatch
	versions
}

// run leaves neither the operator nor the objects behind.
func (r *round) run(ctx context.Context) (result, error) {
	config := r.cluster.Config()
	config.UserAgent = agent
	mgr, err := r.manager(ctx, config, r.workers)
	if err != nil {
		return result{}, err
	}
	running, stop := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		stop(mgr.Start(running))
	}()
	counted, err := r.count(running)
	stop(nil)
	<-ended
	return counted, errors.Join(err, r.clear(ctx))
}

func (r *round) count(ctx context.Context) (result, error) {
	mark, err := r.cluster.Mark()
	if err != nil {
		return result{}, err
	}
	if err := r.create(ctx); err != nil {
		return result{}, err
	}
	if err := program.Pause(ctx, r.warmUp); err != nil {
		return result{}, err
	}
	start, before := time.Now(), r.stored()
	if err := program.Pause(ctx, r.measure); err != nil {
		return result{}, err
	}
	end, after := time.Now(), r.stored()
	requests, err := r.cluster.Requests(mark, localcluster.ByUserAgent(agent), localcluster.NotLeases)
	if err != nil {
		return result{}, err
	}
	counted := result{name: r.name, objects: r.objects, stored: after - before, measured: end.Sub(start)}
	counted.add(requests, start, end)
	return counted, nil
}

func (r *result) add(requests []localcluster.Request, start, end time.Time) {
	for _, request := range requests {
		write := 0
		if localcluster.Writes(request) {
			write = 1
		}
		switch {
		case request.Time.Before(start):
			r.first += write
		case request.Time.Before(end):
			r.requests++
			r.writes += write
		}
	}
}

// create makes the objects and returns when the operator has dealt with each. It does so with one object first: those that
// an operator finds at its start have a low priority in its queue, and a storm on some keeps the others waiting for minutes.
func (r *round) create(ctx context.Context) error {
	watcher, err := r.user.Watch(ctx, r.list(), client.InNamespace(namespace))
	if err != nil {
		return fmt.Errorf("watch the objects: %w", err)
	}
	go r.follow(watcher, r.settled)
	for i := range r.objects {
		object := r.object()
		object.SetGenerateName("storm-")
		if err := r.user.Create(ctx, object); err != nil {
			return fmt.Errorf("create an object: %w", err)
		}
		if i == 0 {
			if err := r.awaitSettled(ctx, 1); err != nil {
				return err
			}
		}
	}
	return r.awaitSettled(ctx, r.objects)
}

func (r *round) awaitSettled(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, settleTimeout, fmt.Errorf("not all objects have their status after %s", settleTimeout))
	defer cancel()
	for r.settledObjects() < n {
		if err := program.Pause(ctx, pollEvery); err != nil {
			return err
		}
	}
	return nil
}

// clear deletes the objects and returns when they are gone.
func (r *round) clear(ctx context.Context) error {
	if err := r.user.DeleteAllOf(ctx, r.object(), client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("delete the objects: %w", err)
	}
	for {
		list := r.list()
		if err := r.user.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("list the objects: %w", err)
		}
		if meta.LenList(list) == 0 {
			return nil
		}
		if err := program.Pause(ctx, pollEvery); err != nil {
			return err
		}
	}
}

// versions counts what a watch delivers. Safe for concurrent use.
type versions struct {
	mu      sync.Mutex
	changes int
	done    map[types.UID]bool
}

// follow reads the watch to its end. Each change is one new version in etcd: a watch leaves none out.
func (v *versions) follow(watcher watch.Interface, settled func(client.Object) bool) {
	for event := range watcher.ResultChan() {
		object, ok := event.Object.(client.Object)
		if !ok {
			continue
		}
		v.mu.Lock()
		if event.Type == watch.Modified {
			v.changes++
		}
		if settled(object) {
			v.done[object.GetUID()] = true
		}
		v.mu.Unlock()
	}
}

func (v *versions) stored() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.changes
}

func (v *versions) settledObjects() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.done)
}
