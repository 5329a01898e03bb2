package chart

import (
	"math"
	"time"
)

// scale gives the ticks of an axis from 0, which are 1, 2 or 5 times a power of ten apart, at most n beyond 0; and where it ends.
func scale(most float64, n int) (ticks []float64, end float64) {
	if most <= 0 {
		return []float64{0, 1}, 1
	}
	power := math.Floor(math.Log10(most / float64(n)))
	for _, factor := range []float64{1, 2, 5, 10} {
		count := math.Ceil(most / (factor * math.Pow(10, power)))
		if count > float64(n) {
			continue
		}
		for i := range int(count) + 1 {
			ticks = append(ticks, decimal(float64(i)*factor, power))
		}
		return ticks, ticks[len(ticks)-1]
	}
	return []float64{0, most}, most
}

// decimal is v times ten to the power, exactly as one would write it.
func decimal(v, power float64) float64 {
	if power < 0 {
		return v / math.Pow(10, -power)
	}
	return v * math.Pow(10, power)
}

// day is what dates are told from on.
const day = 24 * time.Hour

// apart are the distances between ticks of time.
var apart = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, day, 2 * day, 7 * day, 14 * day, 28 * day,
}

// times gives at most n ticks at round times, how to write them, and what to write beside the axis.
func times(from time.Time, length time.Duration, n int) (ticks []time.Time, format, axis string) {
	distance := apart[len(apart)-1]
	for _, d := range apart {
		if length/d < time.Duration(n) {
			distance = d
			break
		}
	}
	for int(length/distance) >= n {
		distance *= 2
	}
	end := from.Add(length)
	for when := from.Truncate(distance); !when.After(end); when = when.Add(distance) {
		if !when.Before(from) {
			ticks = append(ticks, when)
		}
	}
	last := end.UTC()
	switch first := from.UTC(); {
	case distance >= day:
		return ticks, "Jan 2", "day (UTC)"
	case first.YearDay() != last.YearDay() || first.Year() != last.Year():
		return ticks, "Jan 2 15:04", "time (UTC)"
	case distance >= time.Minute:
		return ticks, "15:04", "time (UTC) on " + first.Format(time.DateOnly)
	}
	return ticks, time.TimeOnly, "time (UTC) on " + from.UTC().Format(time.DateOnly)
}
