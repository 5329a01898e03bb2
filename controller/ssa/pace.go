package ssa

import (
	"time"

	"golang.org/x/time/rate"
)

// Pace bounds repeated writes to one object.
type Pace struct {
	// Free is how many writes pass within Window before any is held back.
	Free int
	// PerChild is added to Free for each of Intent.Children.
	PerChild int
	// Window is the time over which Free is counted.
	Window time.Duration
	// Pause is the first time for which writes are held back; it doubles up to MaxPause. One write passes after each pause.
	Pause, MaxPause time.Duration
}

// The paces that are in force where Options leave theirs zero.
var (
	// DefaultContentionPace: three repairs a minute, then pauses of 10 s, 20 s, ... 5 min.
	DefaultContentionPace = Pace{Free: 3, Window: time.Minute, Pause: 10 * time.Second, MaxPause: 5 * time.Minute}
	// DefaultChurnPace: 20 writes a minute and 10 more for each child, then pauses of 5 s, 10 s, ... 5 min.
	DefaultChurnPace = Pace{Free: 20, PerChild: 10, Window: time.Minute, Pause: 5 * time.Second, MaxPause: 5 * time.Minute}
)

// maxFree bounds the budget of an object with very many children.
const maxFree = 1000

// brake applies a Pace to one object. Its zero value is a brake that was never needed.
type brake struct {
	limiter *rate.Limiter
	// level counts the pauses since the last calm time.
	level int
	// until is the end of the current pause, last the last time a write was asked for.
	until, last time.Time
}

// wait returns how long the current pause still lasts.
func (b *brake) wait(now time.Time) time.Duration { return max(0, b.until.Sub(now)) }

// pass asks for one write. It returns zero when it may go out now, else how long it has to be held back. A write after a
// pause is allowed, and makes the next pause longer.
func (b *brake) pass(p Pace, children int, now time.Time) time.Duration {
	if wait := b.wait(now); wait > 0 {
		return wait
	}
	if b.level > 0 && now.Sub(b.last) > p.Window+2*p.pause(b.level) {
		*b = brake{}
	}
	b.last = now
	if b.level == 0 && b.free(p, children, now) {
		return 0
	}
	b.until = now.Add(p.pause(b.level))
	b.level++
	if b.level == 1 {
		return b.wait(now)
	}
	return 0
}

func (b *brake) free(p Pace, children int, now time.Time) bool {
	budget := min(p.Free+children*p.PerChild, maxFree)
	if b.limiter == nil {
		b.limiter = rate.NewLimiter(rate.Limit(float64(budget)/p.Window.Seconds()), budget)
		b.limiter.AllowN(now, 0)
	}
	if budget != b.limiter.Burst() {
		b.limiter.SetBurstAt(now, budget)
		b.limiter.SetLimitAt(now, rate.Limit(float64(budget)/p.Window.Seconds()))
	}
	return b.limiter.AllowN(now, 1)
}

// pause is the length of the pause that follows level earlier ones.
func (p Pace) pause(level int) time.Duration {
	d := p.Pause
	for ; level > 0 && d < p.MaxPause; level-- {
		d *= 2
	}
	return min(d, p.MaxPause)
}

func (p Pace) orDefault(d Pace) Pace {
	if p == (Pace{}) {
		return d
	}
	return p
}
