package localcluster

import (
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

// CPUTime returns the processor time that the named components have taken together, each since it was started last. It is an error
// when one of them does not run, and on any system but Linux.
func (c *Cluster) CPUTime(names ...Component) (time.Duration, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var sum time.Duration
	for _, name := range names {
		p := c.processes[name]
		if p == nil || !p.running() {
			return 0, fmt.Errorf("read the processor time of %s: it does not run", name)
		}
		spent, err := CPUTime(p.cmd.Process.Pid)
		if err != nil {
			return 0, err
		}
		sum += spent
	}
	return sum, nil
}

// CPUTime returns the processor time that a process has taken since its start, without that of its children. It is an error when
// there is no such process, and on any system but Linux.
func CPUTime(pid int) (time.Duration, error) {
	var stat procfs.ProcStat
	p, err := procfs.NewProc(pid)
	if err == nil {
		stat, err = p.Stat()
	}
	if err != nil {
		return 0, fmt.Errorf("read the processor time of process %d, for which Linux is needed: %w", pid, err)
	}
	return time.Duration(stat.CPUTime() * float64(time.Second)).Round(time.Millisecond), nil // the kernel counts in hundredths of a second
}
