package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hduolab/quell/controller/storm"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	watchtools "k8s.io/client-go/tools/watch"
)

// place is where a watch looks.
type place struct {
	resource schema.GroupVersionResource
	// namespace, or "" for all.
	namespace string
}

// follow is the watch of the metadata of one resource, in one namespace or all of them. A RetryWatcher takes it up again at the
// version that it had come to. What that does not do is done here: it would ask every second whatever the answer, for a version
// that the API server has forgotten too, and tell nobody meanwhile.
type follow struct {
	place
	source *Source
	cancel context.CancelFunc
	pauses wait.Backoff
	// opened is when the present watch was, zero without one.
	opened time.Time

	// guarded by Source.mutex:
	state State
	err   error
	gaps  int
}

// pauses between tries: 1 s, growing to a minute, and up to half as much more at random.
var pauses = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.5, Steps: 16, Cap: time.Minute}

// steady is how long a watch must last for the pauses to begin anew.
const steady = time.Minute

// listTimeout is how long one of the places for lists can be taken.
const listTimeout = 30 * time.Second

func (f *follow) client() metadata.ResourceInterface {
	return f.source.options.Metadata.Resource(f.resource).Namespace(f.namespace)
}

// run watches from now on, and after each gap from then on.
func (f *follow) run(ctx context.Context) {
	defer f.cancel()
	for ctx.Err() == nil {
		version, err := f.newest(ctx)
		if err != nil {
			f.retry(ctx, err)
			continue
		}
		err = f.watch(ctx, version)
		f.broken()
		if ctx.Err() == nil {
			f.gap()
			f.retry(ctx, err)
		}
	}
}

// newest is the version of the resource's newest change. A list of one object tells it as well as a list of all.
func (f *follow) newest(ctx context.Context) (string, error) {
	select {
	case f.source.lists <- struct{}{}:
		defer func() { <-f.source.lists }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	list, err := f.client().List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return "", fmt.Errorf("list one object: %w", err)
	}
	return list.ResourceVersion, nil
}

// watch hands on the changes after a version until ctx is done or the API server cannot go on from the version it had come to.
func (f *follow) watch(ctx context.Context, version string) error {
	w, err := watchtools.NewRetryWatcherWithContext(ctx, version, f)
	if err != nil {
		return err
	}
	defer func() {
		w.Stop()
		<-w.Done()
	}()
	for e := range w.ResultChan() {
		if e.Type == watch.Error {
			return apierrors.FromObject(e.Object)
		}
		if o, isMetadata := e.Object.(*metav1.PartialObjectMetadata); isMetadata {
			f.source.metadata(f.source.change(f.resource, e.Type, o, nil))
		}
	}
	return errEnded
}

var errEnded = errors.New("the watch ended")

// WatchWithContext is for the RetryWatcher, which calls it once a second at most. It returns once a watch is open, once ctx is
// done, or once the version to go on from turns out to be forgotten, which the watch that it returns then says.
func (f *follow) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if f.broken() {
		f.pause(ctx, nil) // the next answer tells how the watch is
	}
	for {
		w, err := f.client().Watch(ctx, o)
		switch {
		case ctx.Err() != nil:
			if err == nil {
				w.Stop()
			}
			return watch.NewEmptyWatch(), nil
		case err == nil:
			f.opened = f.source.options.Clock.Now()
			f.set(nil)
			return w, nil
		case isForgotten(err):
			return goneWatch(err), nil
		}
		f.retry(ctx, fmt.Errorf("watch: %w", err))
	}
}

// broken takes note that there is no watch any more. It reports whether there was one that did not last.
func (f *follow) broken() bool {
	opened := f.opened
	f.opened = time.Time{}
	if opened.IsZero() {
		return false
	}
	if f.source.options.Clock.Since(opened) < steady {
		return true
	}
	f.pauses = pauses
	return false
}

func isForgotten(err error) bool { return apierrors.IsGone(err) || apierrors.IsResourceExpired(err) }

// goneWatch says that a version is forgotten, and ends.
func goneWatch(err error) watch.Interface {
	w := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 1})
	gone := apierrors.NewResourceExpired(err.Error())
	w.Error(&gone.ErrStatus)
	w.Stop()
	return w
}

// retry shows the error and waits until it is time to try again: as long as the API server asks for, at least.
func (f *follow) retry(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	f.set(err)
	f.pause(ctx, err)
}

// pause waits until it is time to try again.
func (f *follow) pause(ctx context.Context, err error) {
	pause := f.pauses.Step()
	if seconds, asked := apierrors.SuggestsClientDelay(err); asked {
		pause = max(pause, time.Duration(seconds)*time.Second)
	}
	timer := f.source.options.Clock.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}

func (f *follow) set(err error) {
	f.source.mutex.Lock()
	defer f.source.mutex.Unlock()
	f.state, f.err = stateOf(err), err
}

// gap counts versions that may have been missed.
func (f *follow) gap() {
	f.source.mutex.Lock()
	defer f.source.mutex.Unlock()
	f.gaps++
	f.source.detector.Interrupt(f.resource.GroupResource(), f.namespace)
}

// change is what an event stands for; object is the whole version where it is known.
func (s *Source) change(r schema.GroupVersionResource, how watch.EventType, o metav1.Object, object map[string]any) storm.Change {
	c := storm.Change{
		Key:  storm.Key{GroupResource: r.GroupResource(), Namespace: o.GetNamespace(), Name: o.GetName()},
		Time: s.options.Clock.Now(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(), Generation: o.GetGeneration(),
		ManagedFields: o.GetManagedFields(), Object: object,
	}
	if how == watch.Deleted {
		c.Type = storm.Deleted
	}
	return c
}
