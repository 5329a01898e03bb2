package stormwatch

import "testing"

func TestRateWords(t *testing.T) {
	for _, c := range []struct {
		rate float64
		want string
	}{
		{0, "less than 1/min"}, {0.01, "less than 1/min"}, {0.02, "at least 1/min"}, {0.4, "at least 20/min"}, {0.99, "at least 20/min"},
		{1, "at least 1/s"}, {4.9, "at least 2/s"}, {99, "at least 50/s"}, {100, "at least 100/s"}, {12345, "at least 10000/s"},
		{1e9, "at least 1000000/s"},
	} {
		step := stepOf(c.rate)
		if got := rateWords(step); got != c.want {
			t.Errorf("%v is %q, want %q", c.rate, got, c.want)
		}
		if back := stepIn(c.want); back != step {
			t.Errorf("%q is step %d, want %d", c.want, back, step)
		}
	}
}

func TestStepsHaveADeadBand(t *testing.T) {
	hundred := stepOf(100)
	for _, c := range []struct {
		rate float64
		want string
	}{
		{71, "at least 100/s"}, {259, "at least 100/s"}, {69, "at least 50/s"}, {261, "at least 200/s"}, {10, "at least 10/s"}, {0, "less than 1/min"},
	} {
		if got := rateWords(stepNear(hundred, c.rate)); got != c.want {
			t.Errorf("%v after 100 is %q, want %q", c.rate, got, c.want)
		}
	}
	for step := range fastest { // what a step was left for is not left at once
		if up := stepNear(step, upperBand*floor(step+1)*1.001); stepNear(up, lowerBand*floor(up)*1.001) != up || up <= step {
			t.Errorf("step %d has no dead band", step)
		}
	}
}

func TestRoundedCount(t *testing.T) {
	for _, c := range []struct{ before, n, want int }{
		{0, 0, 0}, {3, 7, 7}, {0, 20, 20}, {0, 21, 20}, {0, 49, 20}, {0, 50, 50}, {50, 40, 50}, {50, 34, 20}, {100, 19, 19}, {20, 60, 20}, {20, 70, 50},
	} {
		if got := roundedCount(c.before, c.n); got != c.want {
			t.Errorf("%d after %d is %d, want %d", c.n, c.before, got, c.want)
		}
	}
}
