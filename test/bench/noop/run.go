// Package noop measures what a reconcile costs in which nothing has to be written, for Quell and its rivals in one run, and the parts
// of Quell's. Its benchmarks work on a real control plane.
package noop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/hduolab/quell/test/bench/figures"
	"github.com/hduolab/quell/test/checkout"
	"golang.org/x/tools/benchmark/parse"
)

// Options say what to measure.
type Options struct {
	// Count is how often each benchmark is run; zero means 5.
	Count int
}

// parts are the packages with benchmarks, by the folder of their module.
var parts = []struct {
	module   string
	packages []string
}{
	{".", []string{"./controller/ssa", "./controller/app", "./controller/eventfilter", "./controller/fieldowners"}},
	{"test/bench", []string{"./noop"}},
}

// Run runs the benchmarks one after the other, with as little beside them as go test allows, and returns the median of each. What go
// test prints goes to progress. An error tells which part failed; nothing is returned then.
func Run(ctx context.Context, o Options, progress io.Writer) (figures.NoOp, error) {
	if o.Count < 0 {
		return figures.NoOp{}, errors.New("the number of runs must not be negative")
	}
	if o.Count == 0 {
		o.Count = 5
	}
	root, err := checkout.Find(ctx)
	if err != nil {
		return figures.NoOp{}, err
	}
	found := map[string][]*parse.Benchmark{}
	for _, part := range parts {
		for _, p := range part.packages {
			output, err := measure(ctx, o, filepath.Join(root, part.module), p, progress)
			if err != nil {
				return figures.NoOp{}, fmt.Errorf("benchmarks of %s in %s: %w", p, part.module, err)
			}
			if err := collect(found, output); err != nil {
				return figures.NoOp{}, fmt.Errorf("result of %s in %s: %w", p, part.module, err)
			}
		}
	}
	machine, err := figures.Here()
	return figures.NoOp{Machine: machine, Results: medians(found)}, err
}

func measure(ctx context.Context, o Options, folder, packages string, progress io.Writer) (io.Reader, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", ".", "-benchmem",
		"-count", strconv.Itoa(o.Count), "-timeout", "1h", packages)
	var output bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, io.MultiWriter(&output, progress), progress
	return &output, cmd.Run()
}

// collect adds the results in the output of go test to those by name.
func collect(found map[string][]*parse.Benchmark, output io.Reader) error {
	set, err := parse.ParseSet(output)
	if err != nil {
		return err
	}
	if len(set) == 0 {
		return errors.New("there is none")
	}
	for name, runs := range set {
		found[plain(name)] = append(found[plain(name)], runs...)
	}
	return nil
}

// plain is a benchmark's name without the word Benchmark and the number of processors.
func plain(name string) string {
	name = strings.TrimPrefix(name, "Benchmark")
	if at := strings.LastIndexByte(name, '-'); at >= 0 {
		if _, err := strconv.Atoi(name[at+1:]); err == nil {
			name = name[:at]
		}
	}
	return name
}

// medians sums the runs of each benchmark up, sorted by name.
func medians(found map[string][]*parse.Benchmark) []figures.Benchmark {
	var list []figures.Benchmark
	for _, name := range slices.Sorted(maps.Keys(found)) {
		runs := found[name]
		time := sorted(runs, func(b *parse.Benchmark) float64 { return b.NsPerOp })
		list = append(list, figures.Benchmark{
			Name: name, Runs: len(runs), Time: median(time), Spread: time[len(time)-1] / time[0],
			Bytes:  median(sorted(runs, func(b *parse.Benchmark) float64 { return float64(b.AllocedBytesPerOp) })),
			Allocs: median(sorted(runs, func(b *parse.Benchmark) float64 { return float64(b.AllocsPerOp) })),
		})
	}
	return list
}

func sorted(runs []*parse.Benchmark, of func(*parse.Benchmark) float64) []float64 {
	values := make([]float64, len(runs))
	for i, b := range runs {
		values[i] = of(b)
	}
	slices.Sort(values)
	return values
}

// median of sorted values, of which there is at least one.
func median(values []float64) float64 {
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	return (values[middle-1] + values[middle]) / 2
}
