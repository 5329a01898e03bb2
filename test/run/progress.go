package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

const (
	indent        = "              "
	progressEvery = 15 * time.Second
)

// progress tells a person what is going on. It is safe for concurrent use.
type progress struct {
	mu       sync.Mutex
	out      io.Writer
	n, steps int
	started  time.Time
}

func newProgress(out io.Writer, steps int) *progress {
	return &progress{out: out, steps: steps, started: time.Now()}
}

func (p *progress) elapsed() time.Duration {
	return time.Since(p.started).Round(100 * time.Millisecond)
}

// step begins the next step.
func (p *progress) step(format string, args ...any) {
	p.n++
	p.say("[%d/%d %6.1fs] %s", p.n, p.steps, p.elapsed().Seconds(), fmt.Sprintf(format, args...))
}

// detail tells more about the present step.
func (p *progress) detail(format string, args ...any) {
	text := strings.TrimRight(fmt.Sprintf(format, args...), "\n")
	p.say("%s%s", indent, strings.ReplaceAll(text, "\n", "\n"+indent))
}

func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, format+"\n", args...)
}

// Write makes details of whole lines, as package localcluster writes them.
func (p *progress) Write(lines []byte) (int, error) {
	p.detail("%s", bytes.TrimPrefix(lines, []byte("localcluster: ")))
	return len(lines), nil
}

// during tells every 15 seconds that the work goes on.
func (p *progress) during(what string, work func() error) error {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(progressEvery)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				p.detail("still %s, %.0fs in all", what, p.elapsed().Seconds())
			}
		}
	}()
	defer func() { close(done); <-ended }()
	return work()
}
