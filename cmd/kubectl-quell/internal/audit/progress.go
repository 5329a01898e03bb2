package audit

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/hduolab/quell/cmd/kubectl-quell/internal/frame"
	"k8s.io/cli-runtime/pkg/printers"
)

// progress tells a person at a terminal how much of the logs was read.
type progress struct {
	frame       *frame.Frame
	isWatched   bool
	read, total int64
	told        time.Time
}

// newProgress knows the size of regular files only.
func newProgress(f *frame.Frame, files []string) *progress {
	p := &progress{frame: f, isWatched: printers.IsTerminal(f.ErrOut), told: f.Now()}
	for _, name := range files {
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
			p.total += info.Size()
		}
	}
	return p
}

// over counts what is read of a log.
func (p *progress) over(log io.Reader) io.Reader { return &watched{log, p} }

type watched struct {
	io.Reader
	progress *progress
}

// Read reads and counts.
func (w *watched) Read(buffer []byte) (int, error) {
	n, err := w.Reader.Read(buffer)
	w.progress.add(int64(n))
	return n, err
}

func (p *progress) add(n int64) {
	p.read += n
	if now := p.frame.Now(); p.isWatched && now.Sub(p.told) >= time.Second {
		p.told = now
		fmt.Fprint(p.frame.ErrOut, "\r"+p.words()+"\x1b[K")
	}
}

func (p *progress) words() string {
	const mebi = 1 << 20
	if p.total >= p.read && p.total > 0 {
		return fmt.Sprintf("%d of %d MiB read, %d %%", p.read/mebi, p.total/mebi, p.read*100/p.total)
	}
	return fmt.Sprintf("%d MiB read", p.read/mebi)
}

// done wipes the line.
func (p *progress) done() {
	if p.isWatched {
		fmt.Fprint(p.frame.ErrOut, "\r\x1b[K")
	}
}
