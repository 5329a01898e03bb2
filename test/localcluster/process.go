package localcluster

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const tailLines = 20

// spawner starts children from one operating system thread that lives as long as they may: the kernel's parent-death
// signal watches the thread that started a child, not the process, and Go ends threads at will.
type spawner struct{ starts chan func() }

func newSpawner() *spawner {
	s := &spawner{make(chan func())}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		for start := range s.starts {
			start()
		}
	}()
	return s
}

func (s *spawner) start(cmd *exec.Cmd) error {
	result := make(chan error)
	s.starts <- func() { result <- cmd.Start() }
	return <-result
}

// close ends the thread, and on Linux with it every child that still runs.
func (s *spawner) close() { close(s.starts) }

// process is one running, or ended, child.
type process struct {
	name      Component
	cmd       *exec.Cmd
	log       string
	logOffset int64 // where this run's output starts in log
	stopping  atomic.Bool
	ended     chan struct{} // closed after the child was reaped
}

// startProcess starts the child with its output appended to the file log.
func (s *spawner) startProcess(name Component, cmd *exec.Cmd, log string) (*process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", name, err)
	}
	defer file.Close()
	offset, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", name, err)
	}
	cmd.Stdout, cmd.Stderr = file, file
	cmd.SysProcAttr = childAttributes()
	if err := s.start(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{name: name, cmd: cmd, log: log, logOffset: offset, ended: make(chan struct{})}
	go p.reap()
	return p, nil
}

func (p *process) reap() {
	_ = p.cmd.Wait() // exitError reads the same from cmd.ProcessState
	close(p.ended)
}

// stop asks the child to end and, after grace, kills it. It returns once the child was reaped.
func (p *process) stop(grace time.Duration) {
	p.stopping.Store(true)
	p.signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(grace):
		p.kill()
	}
}

// kill ends the child at once and returns once it was reaped.
func (p *process) kill() {
	p.stopping.Store(true)
	p.signal(syscall.SIGKILL)
	<-p.ended
}

// signal ignores its error: the only one possible is that the child has ended already.
func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// exitError says how the child ended and what it said last. It may be called only after the child ended.
func (p *process) exitError() error {
	return fmt.Errorf("%s ended by itself (%s); its last words, from %s:\n%s", p.name, p.cmd.ProcessState, p.log, p.tail())
}

func (p *process) tail() string {
	text, err := readFrom(p.log, p.logOffset)
	if err != nil {
		return err.Error()
	}
	return lastLines(text, tailLines)
}

func readFrom(path string, offset int64) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return "", err
	}
	text, err := io.ReadAll(file)
	return string(text), err
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
