package stormwatch

import "time"

// hold is how long something must have been seen before it takes the place of what was reported.
const hold = time.Minute

// steady is a value that gives way to another only once it has not been seen for a while, so that noise never shows.
type steady[T comparable] struct {
	value T
	// left is since when something else has been seen all the time, zero while it has not.
	left time.Time
}

// see takes what is seen now; it becomes the value when something else than the value has been seen for as long as after.
func (s steady[T]) see(seen T, after time.Duration, now time.Time) steady[T] {
	if seen == s.value {
		return steady[T]{value: s.value}
	}
	if s.left.IsZero() {
		s.left = now
	}
	if now.Sub(s.left) >= after {
		return steady[T]{value: seen}
	}
	return s
}
