package auditlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/hduolab/quell/controller/storm"
	"github.com/hduolab/quell/controller/storm/timeline"
)

// DefaultMaxLine is the longest line that is read, in bytes. The API server takes requests of 3 MiB, but lists have no limit.
const DefaultMaxLine = 64 << 20

// Options of an Analysis; every zero value stands for its default.
type Options struct {
	// Storm are the thresholds for writes, always with Retrospective. Rate, MinSamples and MinDuration also hold for writes without
	// effect and for rejected ones.
	Storm storm.Options
	// ListRate per second from which one client's lists of one resource are a flood. Default 1.
	ListRate float64
	// GetRate per second from which one client's gets of one object are a flood. Default 10.
	GetRate float64
	// MaxLine in bytes; longer lines count as broken. Default DefaultMaxLine.
	MaxLine int
	// Counters of each of the sketches. Default 4096.
	Counters int
}

func (o Options) withDefaults() Options {
	o.ListRate = cmp.Or(o.ListRate, 1)
	o.GetRate = cmp.Or(o.GetRate, 10)
	o.MaxLine = cmp.Or(o.MaxLine, DefaultMaxLine)
	o.Counters = cmp.Or(o.Counters, 4096)
	o.Storm.Retrospective = true
	return o
}

// Analysis collects what audit logs show. It is not safe for concurrent use.
type Analysis struct {
	options  Options
	detector *storm.Detector
	tally    tally
	levels   map[string]int64
	lines    int64
	broken   int64
	examples []Broken
	from, to time.Time
	// writes over time.
	objects  *timeline.Timeline[storm.Key]
	managers *timeline.Timeline[fieldowners.Owner]
}

// Broken is a line that could not be read.
type Broken struct {
	File string
	// Line from 1 on.
	Line   int
	Reason string
}

// maxExamples is how many broken lines are told with their numbers.
const maxExamples = 20

const (
	// steps is how many points in time a report has at most, which it takes even for a log of months.
	steps = 600
	// keptLines is among how many objects and managers the most frequent ones are found.
	keptLines = 64
	// shownLines is how many of them a report has.
	shownLines = 8
)

// New makes an analysis.
func New(options Options) *Analysis {
	o := options.withDefaults()
	detector := storm.New(o.Storm)
	o.Storm = detector.Options()
	return &Analysis{
		options: o, detector: detector, tally: newTally(o), levels: map[string]int64{},
		objects: timeline.New[storm.Key](steps, keptLines), managers: timeline.New[fieldowners.Owner](steps, keptLines),
	}
}

// Read takes one log, plain or gzipped, to its end. Name is what broken lines are told with. Several logs of one API server are
// read in the order of their times. The error is one of reading or that of ctx; broken lines are counted and are no error.
func (a *Analysis) Read(ctx context.Context, name string, log io.Reader) error {
	err := lines(ctx, log, a.options.MaxLine, func(number int, line []byte) error {
		a.lines++
		if line == nil {
			a.reject(name, number, fmt.Errorf("longer than %d bytes", a.options.MaxLine))
			return nil
		}
		e, err := parse(line)
		if err != nil {
			a.reject(name, number, err)
			return nil
		}
		a.observe(e)
		return nil
	})
	if err != nil && !errors.Is(err, ctx.Err()) {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return err
}

func (a *Analysis) reject(name string, number int, err error) {
	a.broken++
	if len(a.examples) < maxExamples {
		a.examples = append(a.examples, Broken{name, number, err.Error()})
	}
}

// maxLevels is more than there are; a broken log cannot make it grow.
const maxLevels = 8

func (a *Analysis) observe(e *event) {
	if !e.isEnd() {
		return
	}
	if _, known := a.levels[e.Level]; known || len(a.levels) < maxLevels {
		a.levels[e.Level]++
	}
	when := e.when()
	if a.from.IsZero() || when.Before(a.from) {
		a.from = when
	}
	if when.After(a.to) {
		a.to = when
	}
	c, madeOne := e.change()
	a.tally.add(e, c, madeOne)
	if madeOne {
		a.draw(&c)
		a.detector.Observe(c)
	}
}

// draw counts a write by its time.
func (a *Analysis) draw(c *storm.Change) {
	if c.Type != storm.Written {
		return
	}
	writer := *c.Writer
	writer.APIVersion = ""
	a.objects.Add(c.Key, c.Time, c.Time, 1)
	a.objects.AddTotal(c.Time, c.Time, 1)
	a.managers.Add(writer, c.Time, c.Time, 1)
	a.managers.AddTotal(c.Time, c.Time, 1)
}
