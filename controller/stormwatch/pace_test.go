package stormwatch

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	at := start.Add
	once := history{}.wrote(alarm, start)
	full := history{}
	for i := range budget + 3 {
		full = full.wrote(alarm, at(time.Duration(i)*10*time.Second))
	}
	for _, c := range []struct {
		name string
		h    history
		u    urgency
		now  time.Duration
		want time.Duration
	}{
		{"nothing is free", full, nothing, 0, 0},
		{"the first write", history{}, detail, 0, 0},
		{"an alarm soon after", once, alarm, 2 * time.Second, 3 * time.Second},
		{"an alarm later", once, alarm, 5 * time.Second, 0},
		{"a change", once, change, 10 * time.Second, 50 * time.Second},
		{"a detail", once, detail, time.Minute, 4 * time.Minute},
		{"an answer", once, answer, 0, 0},
		{"an answer beyond the budget", full, answer, 100 * time.Second, 0},
		{"an alarm beyond the budget", full, alarm, 130 * time.Second, 500 * time.Second},
		{"an answer after a failure", once.broke(at(time.Minute)), answer, 70 * time.Second, 20 * time.Second},
		{"a write ends a failure", once.broke(start).wrote(answer, at(time.Second)), alarm, 6 * time.Second, 0},
	} {
		if got := c.h.wait(c.u, at(c.now)); got != c.want {
			t.Errorf("%s: waits %s, want %s", c.name, got, c.want)
		}
	}
}

// Whatever is asked for, and how often, fewer than one write a minute goes out.
func TestTheBudgetHolds(t *testing.T) {
	for _, u := range []urgency{detail, change, alarm} {
		h, now, n := history{}, time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), 0
		for range int(10 * time.Hour / time.Second) {
			if now = now.Add(time.Second); h.wait(u, now) == 0 {
				h, n = h.wrote(u, now), n+1
			}
		}
		if n >= 600 || n < 100 {
			t.Errorf("%d writes in ten hours for urgency %d", n, u)
		}
		t.Logf("urgency %d: %d writes in ten hours", u, n)
	}
}
