package stormwatch

import (
	"fmt"
	"math"
)

// A rate is reported as a step: 1, 2, 5, 10 or 20 a minute, then 1, 2, 5, 10, 20, 50, ... a second. Steps are counted from 0; -1
// is what is slower than all of them.
var perMinute = [...]float64{1, 2, 5, 10, 20}

const (
	slower  = -1
	fastest = len(perMinute) + 3*6 // a million a second
	// A step stands while the rate is within these shares of its own bound and of the next step's.
	lowerBand, upperBand = 0.7, 1.3
)

// floor is the rate per second from which a step holds.
func floor(step int) float64 {
	switch i := step - len(perMinute); {
	case step < 0:
		return 0
	case i < 0:
		return perMinute[step] / 60
	default:
		return [...]float64{1, 2, 5}[i%3] * math.Pow10(i/3)
	}
}

// stepOf is the step of a rate per second.
func stepOf(rate float64) int {
	step := slower
	for step < fastest && floor(step+1) <= rate {
		step++
	}
	return step
}

// stepNear is the step of a rate of which a step was reported before: that one, until the rate is far from it.
func stepNear(step int, rate float64) int {
	if rate >= lowerBand*floor(step) && rate < upperBand*floor(step+1) {
		return step
	}
	return stepOf(rate)
}

// rateWords is what status says of a step.
func rateWords(step int) string {
	switch {
	case step < 0:
		return "less than 1/min"
	case step < len(perMinute):
		return fmt.Sprintf("at least %.0f/min", perMinute[step])
	}
	return fmt.Sprintf("at least %.0f/s", floor(step))
}

// stepIn is the step that words speak of, slower for others than those of rateWords.
func stepIn(words string) int {
	for step := range fastest + 1 {
		if rateWords(step) == words {
			return step
		}
	}
	return slower
}

// exact is up to where storms are counted one by one.
const exact = 20

// roundedCount is a number of storms as status has it: the steps of a rate above exact, with the same dead band.
func roundedCount(before, n int) int {
	if n <= exact {
		return n
	}
	step := stepOf(float64(n))
	if before >= exact {
		step = stepNear(stepOf(float64(before)), float64(n))
	}
	return max(exact, int(floor(step)))
}
