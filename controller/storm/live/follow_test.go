package live

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// hurried is a clock that tells what it was asked to wait for and does not wait.
type hurried struct {
	*clocktesting.FakeClock
	asked chan time.Duration
}

func (h hurried) NewTimer(d time.Duration) clock.Timer {
	h.asked <- d
	return clock.RealClock{}.NewTimer(0)
}

// server answers a list with a version and opens a watch whenever one is asked for.
func server(opened chan<- *watch.FakeWatcher) *fake.FakeMetadataClient {
	client := fake.NewSimpleMetadataClient(fake.NewTestScheme())
	client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
	})
	client.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) {
		w := watch.NewFake()
		opened <- w
		return true, w, nil
	})
	return client
}

// Watches that open and break at once come ever more seldom, until one lasts.
func TestPausesGrowUntilAWatchLasts(t *testing.T) {
	gone := &metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonGone}
	for how, end := range map[string]func(*watch.FakeWatcher){
		"its version is forgotten": func(w *watch.FakeWatcher) { w.Error(gone) }, "it ends": (*watch.FakeWatcher).Stop,
	} {
		t.Run(how, func(t *testing.T) {
			opened := make(chan *watch.FakeWatcher, 1) // the last one is not taken
			clock := hurried{clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), make(chan time.Duration, 1)}
			s := New(Options{Metadata: server(opened), Clock: clock})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var group sync.WaitGroup
			group.Go(func() { (&follow{place: place{resource: widgets}, source: s, pauses: pauses, cancel: cancel}).run(ctx) })
			defer group.Wait()
			defer cancel()
			lasts := func(d time.Duration) {
				w := <-opened
				// Once it is taken, the follow knows of the watch.
				w.Action(watch.Bookmark, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "2"}})
				clock.Step(d)
				end(w)
			}
			for _, least := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
				lasts(time.Second)
				if pause := <-clock.asked; pause < least || pause > least*3/2 {
					t.Fatalf("a pause of %s, want %s and up to half more", pause, least)
				}
			}
			lasts(steady)
			if how == "it ends" { // and is taken up at once
				lasts(time.Second)
			}
			if pause := <-clock.asked; pause > time.Second*3/2 {
				t.Errorf("a pause of %s after a watch that lasted", pause)
			}
		})
	}
}

// A resource that is watched anew, here in another version, has been out of sight for a while.
func TestAWatchBegunAnewIsAGap(t *testing.T) {
	s := New(Options{})
	ended, cancel := context.WithCancel(t.Context())
	cancel() // nothing is asked of the cluster
	var group sync.WaitGroup
	defer group.Wait()
	newer := widgets
	newer.Version = "v2"
	for i, r := range []schema.GroupVersionResource{widgets, newer} {
		s.Watch([]Resource{{GroupVersionResource: r, IsNamespaced: true}})
		s.adjust(ended, &group)
		for n := range 4 {
			o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "w", ResourceVersion: fmt.Sprint(1 + 10*i + n)}}
			s.metadata(s.change(r, watch.Modified, o, nil))
			s.adjust(ended, &group) // which changes nothing
		}
		evidence := strings.Join(s.Report().Findings[0].Evidence, "; ")
		if isTold := strings.Contains(evidence, "interrupted"); isTold != (i == 1) {
			t.Errorf("watched as %s: %s", r.Version, evidence)
		}
	}
}
