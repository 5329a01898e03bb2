package ssa

import (
	"slices"
	"time"

	"github.com/hduolab/quell/controller/fieldowners"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// decide fills in the result and returns true when nothing is to be sent.
func (c *call) decide() (bool, error) {
	if c.Live == nil {
		return false, nil
	}
	c.result.Object = c.Live
	if err := c.findReasons(); err != nil {
		return false, err
	}
	if c.result.Outcome == Conflicted {
		return true, nil
	}
	if len(c.result.Reasons) > 0 {
		return c.holdBack(), nil
	}
	// A live object that shows what was last sent shows that it was committed; any other may be older than that.
	if c.record.doubt && c.record.last != c.digest {
		return false, nil
	}
	c.result.Outcome = Unchanged
	c.remember(c.Live.GetResourceVersion())
	c.stillContended()
	return true, nil
}

// findReasons compares the content with the live object.
func (c *call) findReasons() error {
	c.result.Yielded = nil
	c.entries = fieldowners.Parse(c.Live.GetManagedFields())
	if _, stripped := c.stripped.Load(c.object.GroupVersionKind().GroupKind()); stripped && len(c.entries) == 0 && c.inPlaceBefore() {
		c.entries = []fieldowners.Entry{{Owner: c.owner(), Fields: c.fields}}
	}
	typed, exact, err := c.typedOf(c.Live)
	if err != nil {
		return err
	}
	if done, err := c.obey(typed, exact); done || err != nil {
		return err
	}
	if c.result.Reasons, err = difference(c.content, typed, c.entries, c.owner(), c.surplus); err != nil {
		return err
	}
	if c.incidental != nil && len(c.record.unsticky) == 0 && !slices.ContainsFunc(c.result.Reasons, func(r Reason) bool { return !c.incidental(r) }) {
		c.result.Reasons = nil
	}
	if c.opts.Subresource == "" && len(c.result.Reasons) == 0 {
		c.result.Reasons = moved("", c.object.Object, c.arranged(c.Live))
	}
	return nil
}

// typedOf gives an object as it is in the API server its merge rules, and tells whether it is exact. What Options.Types do not know of
// an unstructured one, which is newer then, is left out where the scheme knows the kind.
func (c *call) typedOf(live client.Object) (tv *typed.TypedValue, exact bool, err error) {
	gvk := c.object.GroupVersionKind()
	tv, err = fieldowners.Typed(live, gvk, c.opts.Types)
	if u, isUnstructured := live.(*unstructured.Unstructured); isUnstructured && err != nil {
		if o, known := c.inScheme(u); known == nil && o != live {
			live = o
			tv, err = fieldowners.Typed(o, gvk, c.opts.Types)
		}
	}
	return tv, isLiveExact(live, gvk), err
}

// isLiveExact reports whether an object has all fields that the API server has. A Go type of a custom resource may leave out zeros that
// are stored; of a built-in one the API server's own type leaves out the same.
func isLiveExact(live client.Object, gvk schema.GroupVersionKind) bool {
	if _, isUnstructured := live.(runtime.Unstructured); isUnstructured {
		return true
	}
	kinds, _, err := clientgoscheme.Scheme.ObjectKinds(live)
	return err == nil && slices.Contains(kinds, gvk)
}

// inPlaceBefore reports whether this very content has been in place on this object.
func (c *call) inPlaceBefore() bool { return c.record.known && c.record.content == c.digest }

// knownSurplus identifies what the API server added to the content when it was last in place.
func (c *call) knownSurplus() digest {
	if !c.inPlaceBefore() {
		return digest{}
	}
	return c.record.surplus
}

// holdBack decides whether the write has to wait or is pointless.
func (c *call) holdBack() bool {
	if c.onlyUnsticky() {
		c.result.Outcome, c.result.RetryAfter = DoesNotStick, c.recheck()
		return true
	}
	if c.record.granted {
		return false
	}
	if c.settle != nil {
		if wait := c.settle(c); wait > 0 {
			c.result.Outcome, c.result.RetryAfter = Settling, wait
			return true
		}
	}
	switch {
	case c.record.refused.digest == c.digest:
		return false // send knows when to ask again
	case c.record.doubt:
		return false // what differs may be our own doing
	case c.inPlaceBefore():
		return c.fight()
	case c.record.known && c.record.inputs == digestOf(c.inputs):
		c.result.Outcome, c.result.RetryAfter = SelfChurn, c.record.churn.pass(c.opts.Churn, c.Children, c.now)
	}
	return c.result.Held() || c.throttle()
}

// throttle holds back what Options.Limit does not allow.
func (c *call) throttle() bool {
	if c.opts.Limit == (Pace{}) {
		return false
	}
	c.result.Outcome, c.result.RetryAfter = Throttled, c.record.limit.pass(c.opts.Limit, c.Children, c.now)
	return c.result.Held()
}

// fight asks for the repair of what others took back, and notes what the fight is about: the answer stays the same while the
// fight goes on, whichever side is in place at the moment.
func (c *call) fight() bool {
	waiting := c.record.contention.wait(c.now) > 0
	c.result.RetryAfter = c.record.contention.pass(c.opts.Contention, 0, c.now)
	if c.record.contention.level() == 0 {
		return false
	}
	if !waiting {
		c.record.contended = append(slices.Clip(c.result.Reasons), c.record.inTheWay...)
	}
	c.result.Outcome, c.result.Reasons = Contended, c.record.contended
	return c.result.RetryAfter > 0
}

// stillContended keeps saying Contended until a calm time has passed: that our content is in place just after a repair does not
// mean that the rival has given up.
func (c *call) stillContended() {
	if calm := c.record.contention.calm(c.opts.Contention, c.now); calm > 0 {
		c.result.Outcome, c.result.Reasons, c.result.RetryAfter = Contended, c.record.contended, calm
		return
	}
	c.record.contended = nil
	if c.record.contention.age(c.now) > c.opts.Contention.Window {
		c.record.inTheWay = nil
	}
}

// onlyUnsticky reports whether everything that differs is known not to stick, and it is not yet time to try again.
func (c *call) onlyUnsticky() bool {
	if len(c.record.unsticky) == 0 || c.record.content != c.digest || c.record.epoch != c.epoch.Load() {
		return false
	}
	known := func(r Reason) bool {
		return slices.ContainsFunc(c.record.unsticky, func(u Reason) bool { return u.Path == r.Path })
	}
	return !slices.ContainsFunc(c.result.Reasons, func(r Reason) bool { return !known(r) }) && (c.opts.Recheck == 0 || c.recheck() > 0)
}

// recheck is when to try again what did not stick, zero for never.
func (c *call) recheck() time.Duration { return max(0, c.opts.Recheck-c.record.age(c.now)) }
