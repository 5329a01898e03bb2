package ssa

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"golang.org/x/time/rate"
)

// Pace bounds repeated writes to one object. A field that is zero has its default.
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

// brake applies a Pace to one object. Its zero value is a brake that was never needed, as most are, and takes one word.
type brake struct{ *braking }

// braking is what a brake that was needed remembers.
type braking struct {
	limiter *rate.Limiter
	// pauses counts them since the last calm time.
	pauses int
	// until is the end of the current pause, last the last time a write was asked for.
	until, last time.Time
}

// level is how many pauses there were since the last calm time.
func (b brake) level() int {
	if b.braking == nil {
		return 0
	}
	return b.pauses
}

// age is how long ago a write was last asked for; a brake that was never needed is as old as can be.
func (b brake) age(now time.Time) time.Duration {
	if b.braking == nil {
		return math.MaxInt64
	}
	return now.Sub(b.last)
}

// wait returns how long the current pause still lasts.
func (b brake) wait(now time.Time) time.Duration {
	if b.braking == nil {
		return 0
	}
	b.follow(now)
	return max(0, b.until.Sub(now))
}

// follow keeps the brake in step with a clock that was set back: no pause lasts longer because of that.
func (b *braking) follow(now time.Time) {
	if back := b.last.Sub(now); back > 0 {
		b.last, b.until = now, b.until.Add(-back)
	}
}

// pass asks for one write. It returns zero when it may go out now, else how long it has to be held back. A write after a
// pause is allowed, and makes the next pause longer.
func (b *brake) pass(p Pace, children int, now time.Time) time.Duration {
	if b.braking == nil {
		b.braking = &braking{}
	}
	if wait := b.wait(now); wait > 0 {
		return wait
	}
	if b.calm(p, now); b.braking == nil {
		b.braking = &braking{}
	}
	b.last = now
	if b.pauses == 0 && b.free(p, children, now) {
		return 0
	}
	b.until = now.Add(p.pause(b.pauses))
	b.pauses++
	if b.pauses == 1 {
		return b.wait(now)
	}
	return 0
}

// calm returns how long it has to stay quiet until the pauses are forgotten, and forgets them when it has been.
func (b *brake) calm(p Pace, now time.Time) time.Duration {
	if b.level() == 0 {
		return 0
	}
	b.follow(now)
	rest := p.Window + 2*p.pause(b.pauses) - now.Sub(b.last)
	if rest < 0 {
		*b = brake{}
	}
	return max(0, rest)
}

func (b *braking) free(p Pace, children int, now time.Time) bool {
	budget := min(p.Free+children*p.PerChild, maxFree)
	if b.limiter == nil {
		b.limiter = rate.NewLimiter(rate.Limit(float64(budget)/p.Window.Seconds()), budget)
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

// orDefault fills in from d what is zero; the error names a field that is out of range.
func (p Pace) orDefault(d Pace) (Pace, error) {
	if p.Free < 0 || p.PerChild < 0 || p.Window < 0 || p.Pause < 0 || p.MaxPause < 0 {
		return p, fmt.Errorf("no field may be negative, is %+v", p)
	}
	p = Pace{
		Free: cmp.Or(p.Free, d.Free), PerChild: cmp.Or(p.PerChild, d.PerChild), Window: cmp.Or(p.Window, d.Window),
		Pause: cmp.Or(p.Pause, d.Pause), MaxPause: cmp.Or(p.MaxPause, d.MaxPause),
	}
	if p.MaxPause < p.Pause {
		return p, fmt.Errorf("MaxPause %s is less than Pause %s", p.MaxPause, p.Pause)
	}
	return p, nil
}
