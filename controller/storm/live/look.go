package live

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hduolab/quell/controller/storm"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
)

// look is a watch of one object in full. While it runs, metadata of the object wait until the same version was seen in full, and
// are dropped then; what was not seen so when it ends counts by its metadata. So every version counts once.
type look struct {
	key      storm.Key
	resource schema.GroupVersionResource
	cancel   context.CancelFunc
	// guarded by Source.mutex:
	isRunning bool
	// again is when the object may be looked at once more.
	again time.Time
	// version is the latest one that counted, however it was seen.
	version string
	waiting []storm.Change
	// seen is how many versions were.
	seen int
}

const (
	// lookTime is how long one object is watched in full at most.
	lookTime = 15 * time.Second
	// lookPause is the time from one look to the next: the verdict may have changed.
	lookPause = time.Minute
	// failedPause is the same after a look that could not begin.
	failedPause = 10 * time.Second
	// maxWaiting is how far a look may be behind the metadata, in versions.
	maxWaiting = 512
)

// sweep looks at the objects that are written most, one after the other, the hottest first.
func (s *Source) sweep(ctx context.Context, group *sync.WaitGroup) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	now := s.options.Clock.Now()
	running := 0
	for key, l := range s.looks {
		if l.isRunning {
			running++
		} else if now.After(l.again.Add(lookPause)) {
			delete(s.looks, key)
		}
	}
	s.isCrowded = false
	for _, suspect := range s.detector.Suspects(now) {
		if running >= s.options.FullWatches {
			s.isCrowded = s.isCrowded || s.mayBegin(suspect.Object, now)
		} else if s.begin(ctx, group, suspect, now) {
			running++
		}
	}
}

// begin looks at an object, unless that is done, was done lately or cannot be done.
func (s *Source) begin(ctx context.Context, group *sync.WaitGroup, suspect storm.Suspect, now time.Time) bool {
	if !s.mayBegin(suspect.Object, now) {
		return false
	}
	r, isWanted := s.resourceOf(suspect.Object.GroupResource)
	if _, err := resourceversion.CompareResourceVersion(suspect.Version, suspect.Version); err != nil || !isWanted {
		return false // without an order of versions nobody knows which ones are seen already
	}
	l := &look{key: suspect.Object, resource: r, isRunning: true, version: suspect.Version}
	ctx, l.cancel = context.WithTimeout(ctx, lookTime)
	s.looks[l.key] = l
	from := suspect.Before
	if from == "" {
		from = suspect.Version
	}
	group.Go(func() {
		defer l.cancel()
		s.finish(l, s.look(ctx, l, from))
	})
	return true
}

// mayBegin is false for an object that is looked at, or was lately.
func (s *Source) mayBegin(key storm.Key, now time.Time) bool {
	before := s.looks[key]
	return before == nil || !before.isRunning && !now.Before(before.again)
}

func (s *Source) resourceOf(gr schema.GroupResource) (schema.GroupVersionResource, bool) {
	for gvr := range s.wanted {
		if gvr.GroupResource() == gr {
			return gvr, true
		}
	}
	return schema.GroupVersionResource{}, false
}

// look watches an object in full for as long as it takes.
func (s *Source) look(ctx context.Context, l *look, from string) error {
	w, err := s.options.Dynamic.Resource(l.resource).Namespace(l.key.Namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, l.key.Name).String(), ResourceVersion: from,
	})
	if err != nil {
		return fmt.Errorf("watch %s in full: %w", l.key, err)
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, isOpen := <-w.ResultChan():
			if !isOpen {
				return nil
			}
			if e.Type == watch.Error && ctx.Err() == nil {
				return fmt.Errorf("watch %s in full: %w", l.key, apierrors.FromObject(e.Object))
			}
			if o, isObject := e.Object.(*unstructured.Unstructured); isObject && s.full(l, s.change(l.resource, e.Type, o, o.Object)) {
				return nil
			}
		}
	}
}

// full takes a version that was seen in full and reports whether that is enough.
func (s *Source) full(l *look, c storm.Change) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if !l.isRunning || isNewer(l.version, c.ResourceVersion) {
		return !l.isRunning
	}
	s.detector.Observe(c)
	l.version = c.ResourceVersion
	l.dropSeen()
	l.seen++
	enough := s.detector.Options().MinSamples
	if !s.isCrowded {
		enough *= 2 // for a verdict that holds with more confidence
	}
	return l.seen > enough
}

// metadata takes a version of which the metadata were seen.
func (s *Source) metadata(c storm.Change) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	l := s.looks[c.Key]
	switch {
	case l == nil:
		s.detector.Observe(c)
	case !isNewer(c.ResourceVersion, l.version):
	case !l.isRunning:
		s.detector.Observe(c)
	default:
		l.waiting = append(l.waiting, c)
		if len(l.waiting) > maxWaiting {
			s.close(l, failedPause)
		}
	}
}

// finish ends a look.
func (s *Source) finish(l *look, err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	pause := lookPause
	if err != nil || l.seen == 0 {
		pause = failedPause
	}
	s.close(l, pause)
}

// close goes on with metadata where the look ended.
func (s *Source) close(l *look, pause time.Duration) {
	if !l.isRunning {
		return
	}
	l.isRunning, l.again = false, s.options.Clock.Now().Add(pause)
	l.cancel()
	for _, c := range l.waiting {
		s.detector.Observe(c)
	}
	l.waiting = nil
}

func (l *look) dropSeen() {
	n := 0
	for n < len(l.waiting) && !isNewer(l.waiting[n].ResourceVersion, l.version) {
		n++
	}
	l.waiting = l.waiting[n:]
}

// isNewer compares two versions of objects of one resource.
func isNewer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}
