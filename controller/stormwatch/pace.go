package stormwatch

import "time"

// urgency says what a write of status would be for.
type urgency int

const (
	// nothing: status is as it should be.
	nothing urgency = iota
	// detail: rates, and the number of storms that are not named.
	detail
	// change: anything else, as that a storm has ended.
	change
	// alarm: a storm that was not named before, or of which the manager or field was not known; or a change of Ready.
	alarm
	// answer: the spec is another.
	answer
)

const (
	changePause  = time.Minute
	detailPause  = 5 * time.Minute
	alarmPause   = 5 * time.Second
	failurePause = 30 * time.Second
	// In any budgetWindow no more than budget writes go out for what is no answer to the user: less than one a minute, whatever happens.
	budget       = 8
	budgetWindow = 10 * time.Minute
)

// history is what was written, and what failed.
type history struct {
	// writes are the times of the last ones, at most budget of them, answers left out; last is that of any.
	writes []time.Time
	last   time.Time
	failed time.Time
}

// wait is how long a write has to be put off.
func (h history) wait(u urgency, now time.Time) time.Duration {
	if u == nothing {
		return 0
	}
	var until time.Time
	if !h.failed.IsZero() {
		until = h.failed.Add(failurePause)
	}
	if u != answer {
		until = later(until, h.last.Add(map[urgency]time.Duration{detail: detailPause, change: changePause, alarm: alarmPause}[u]))
		if len(h.writes) == budget {
			until = later(until, h.writes[0].Add(budgetWindow))
		}
	}
	return max(0, until.Sub(now))
}

// wrote takes a write into account.
func (h history) wrote(u urgency, now time.Time) history {
	h.last, h.failed = now, time.Time{}
	if u == answer {
		return h
	}
	from := max(0, len(h.writes)+1-budget)
	h.writes = append(h.writes[from:len(h.writes):len(h.writes)], now)
	return h
}

// broke takes a failed write into account; it may have arrived all the same.
func (h history) broke(now time.Time) history {
	h.failed = now
	return h
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
