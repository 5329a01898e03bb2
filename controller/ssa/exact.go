package ssa

import (
	"time"

	"github.com/hduolab/quell/controller/fieldowners"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// stalePace keeps an object that changes faster than it can be read and written from being tried for ever: 20 times a minute,
// then after pauses of 1 s, 2 s, ... 30 s.
var stalePace = Pace{Free: 20, Window: time.Minute, Pause: time.Second, MaxPause: 30 * time.Second}

// isExact reports whether a request has to meet the version that the caller saw.
func (c *call) isExact() bool { return c.Exact && c.given != "" }

// outdated reports whether an exact request would be refused, or has been refused too often.
func (c *call) outdated() bool {
	return c.isExact() && (c.given != c.Live.GetResourceVersion() || c.record.stale.wait(c.now) > 0)
}

// metAnother reports whether the API server refused an exact request because the object has another version.
func (c *call) metAnother(err error) bool {
	if !c.isExact() || !apierrors.IsConflict(err) || len(fieldowners.Conflicts(err)) > 0 || isOtherUID(err) {
		return false
	}
	c.record.stale.pass(stalePace, 0, c.now)
	return true
}

// stale ends a call that wrote nothing, and spares the next one to ask for what this one was allowed.
func (c *call) stale() error {
	c.record.granted = true
	c.result.Outcome, c.result.RetryAfter = Stale, c.record.stale.wait(c.now)
	return nil
}
