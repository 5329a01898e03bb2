package differential_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
)

// resolution is how long an apply has to be away from the write before it: the API server keeps times to the second, so that
// a second apply within it would leave the version as it is by luck.
const resolution = 1100 * time.Millisecond

// workers is how many objects are written to at once; each of them has one writer at a time.
const workers = 4

// number reads a whole number from the environment.
func fromEnvironment(name string, otherwise int) int {
	GinkgoHelper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	Expect(err).NotTo(HaveOccurred(), name)
	return n
}

// run lets objects live for a number of steps, in rounds: each object is written to by others and by us, then all claims of the
// round are verified after one wait.
func run(ctx context.Context, objects []*object, steps int, between func(ctx context.Context)) {
	GinkgoHelper()
	for tally.total("steps") < steps && len(tally.found()) < maxFaults {
		checks := make([]*check, len(objects))
		Expect(each(objects, func(i int, o *object) (err error) {
			checks[i], err = o.turn(ctx)
			return err
		})).To(Succeed())
		verify(ctx, checks)
		clock.Step(time.Hour)
		between(ctx)
	}
}

func each[T any](items []T, do func(i int, item T) error) error {
	var group errgroup.Group
	group.SetLimit(workers)
	for i, item := range items {
		group.Go(func() error { return do(i, item) })
	}
	return group.Wait()
}

// turn writes to one object: others up to three times, then we on one of its sides.
func (o *object) turn(ctx context.Context) (*check, error) {
	for range o.r.IntN(4) {
		tally.count("steps", "writes by others")
		if err := o.disturb(ctx); err != nil {
			return nil, fmt.Errorf("write to %s %s as others: %w", o.Kind, o.name, err)
		}
		o.wrote = time.Now()
	}
	tally.count("steps", "ours")
	return o.sides[o.r.IntN(len(o.sides))].converge(ctx)
}

// verify makes the checks when the last write to each object is long enough ago, once more for those that ask for it.
func verify(ctx context.Context, checks []*check) {
	GinkgoHelper()
	for len(checks) > 0 {
		var last time.Time
		var pending []*check
		for _, k := range checks {
			if k == nil {
				continue
			}
			pending = append(pending, k)
			if k.wrote.After(last) {
				last = k.wrote
			}
		}
		Eventually(time.Now).WithPolling(20 * time.Millisecond).Should(BeTemporally(">", last.Add(resolution)))
		checks = make([]*check, len(pending))
		Expect(each(pending, func(i int, k *check) error {
			again, err := k.verify(ctx)
			if again {
				checks[i] = k
			}
			return err
		})).To(Succeed())
		if !anySet(checks) {
			return
		}
	}
}

func anySet(checks []*check) bool {
	for _, k := range checks {
		if k != nil {
			return true
		}
	}
	return false
}

// seeded is the source of a run's schemas.
func seeded(seed int) *rand.Rand { return rand.New(rand.NewPCG(uint64(seed), 0)) }
