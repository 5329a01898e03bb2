package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// screen tells a person what is going on: lines that stay, and on a terminal below them a few that are painted anew. Safe for
// concurrent use.
type screen struct {
	mu  sync.Mutex
	out io.Writer
	// width of the terminal; 0 when there is none.
	width func() int
	live  []string
	// painted is how many lines above the cursor are to be painted anew.
	painted int
}

func newScreen(out io.Writer) *screen { return &screen{out: out, width: widthOf(out)} }

func widthOf(out io.Writer) func() int {
	f, isFile := out.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return func() int { return 0 }
	}
	return func() int {
		const usual = 80
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
		return usual
	}
}

func (s *screen) isTerminal() bool { return s.width() > 0 }

// say adds lines that stay.
func (s *screen) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paint(fmt.Sprintf(format, args...)+"\n", s.live)
}

// show replaces the lines that are painted anew. Without a terminal it does nothing.
func (s *screen) show(live ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isTerminal() {
		s.paint("", live)
	}
}

// Write says whole lines, as package localcluster and commands write them.
func (s *screen) Write(lines []byte) (int, error) {
	text := string(bytes.TrimRight(lines, "\n"))
	s.say("%s", strings.ReplaceAll(indent+text, "\n", "\n"+indent))
	return len(lines), nil
}

const indent = "  "

func (s *screen) paint(stays string, live []string) {
	text := ""
	if s.painted > 0 {
		text = fmt.Sprintf("\r\x1b[%dA\x1b[J", s.painted)
	}
	text += stays
	for _, line := range live {
		text += cut(line, s.width()) + "\n"
	}
	fmt.Fprint(s.out, text)
	s.live, s.painted = live, len(live)
}

// cut keeps a line from being broken by the terminal.
func cut(line string, width int) string {
	runes := []rune(line)
	if len(runes) < width {
		return line
	}
	return string(runes[:max(0, width-1)])
}

// bars are what a curve is drawn from; the lowest stands for zero alone.
var bars = []rune("▁▂▃▄▅▆▇█")

// sparkline draws the last values that fit into a width, in proportion to the greatest of all.
func sparkline(values []float64, width int) string {
	most := 0.0
	for _, v := range values {
		most = max(most, v)
	}
	values = values[max(0, len(values)-max(0, width)):]
	line := make([]rune, 0, len(values))
	for _, v := range values {
		level := 0
		if v > 0 {
			level = 1 + int(v/most*float64(len(bars)-2)+0.5)
		}
		line = append(line, bars[level])
	}
	return string(line)
}
