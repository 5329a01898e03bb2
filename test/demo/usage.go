package main

import (
	"fmt"
	"os"
	"time"

	"github.com/hduolab/quell/test/localcluster"
	"github.com/prometheus/procfs"
)

// usageReader reads the processor time of API server and etcd.
type usageReader struct{ processes []procfs.Proc }

// newUsageReader finds the two among this process' children. It fails where there is no /proc.
func newUsageReader() (*usageReader, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return nil, fmt.Errorf("read processor times, for which Linux is needed: %w", err)
	}
	all, err := fs.AllProcs()
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}
	u := &usageReader{}
	for _, p := range all {
		stat, err := p.Stat()
		if err != nil || stat.PPID != os.Getpid() { // a process that ended meanwhile is none of ours
			continue
		}
		if stat.Comm == string(localcluster.APIServer) || stat.Comm == string(localcluster.Etcd) {
			u.processes = append(u.processes, p)
		}
	}
	if len(u.processes) != 2 {
		return nil, fmt.Errorf("%d processes of API server and etcd were found", len(u.processes))
	}
	return u, nil
}

// read returns the processor time of both since their start.
func (u *usageReader) read() (time.Duration, error) {
	if u == nil {
		return 0, nil
	}
	seconds := 0.0
	for _, p := range u.processes {
		stat, err := p.Stat()
		if err != nil {
			return 0, fmt.Errorf("read the processor time of process %d: %w", p.PID, err)
		}
		seconds += stat.CPUTime()
	}
	return time.Duration(seconds * float64(time.Second)), nil
}
