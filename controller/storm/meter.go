package storm

import (
	"math"
	"time"
)

// Meter measures the rate of writes with a decaying average. The zero value is ready with Half set. It is not safe for
// concurrent use.
type Meter struct {
	// Half is the age at which a write counts half.
	Half time.Duration
	// Count of the writes, First and Last when they were.
	Count       int64
	First, Last time.Time

	weight, peak float64
}

// Add counts a write. One before the latest counts as of that time.
func (m *Meter) Add(when time.Time) {
	m.Count++
	if m.Count == 1 {
		m.First, m.Last = when, when
		return // a rate is one of intervals, of which there is none yet
	}
	m.weight *= m.decay(when)
	m.weight++
	if when.After(m.Last) {
		m.Last = when
	}
	if m.Last.Sub(m.First) >= m.Half {
		m.peak = max(m.peak, m.Rate(m.Last))
	}
}

func (m *Meter) decay(now time.Time) float64 {
	return math.Exp2(-max(0, now.Sub(m.Last).Seconds()) / m.Half.Seconds())
}

// Rate is the number of writes per second around now. It is the mean for as long as the writes are younger than Half, and of
// writes within the first second it is their number. Until the next write is due it stays what it was at the latest one.
func (m *Meter) Rate(now time.Time) float64 {
	if m.Count < 2 {
		return 0
	}
	rate := m.rate(m.Last)
	if late := now.Sub(m.Last) - time.Duration(float64(time.Second)/rate); late > 0 {
		return m.rate(m.Last.Add(late))
	}
	return rate
}

func (m *Meter) rate(now time.Time) float64 {
	age := max(1, now.Sub(m.First).Seconds()) / m.Half.Seconds()
	return m.weight * m.decay(now) * math.Ln2 / m.Half.Seconds() / (1 - math.Exp2(-age))
}

// Peak is the highest rate per second so far. The burst with which writes may begin counts only once it is averaged over Half,
// or over all of them where they end sooner.
func (m *Meter) Peak() float64 {
	if m.Last.Sub(m.First) >= m.Half {
		return m.peak
	}
	return m.Rate(m.Last)
}
