package main

import (
	"fmt"
	"os"
	"time"

	"github.com/hduolab/quell/test/localcluster"
	"github.com/prometheus/procfs"
)

// cpu is processor time since the start of each.
type cpu struct{ server, etcd, detector time.Duration }

// usage reads the processor times of this process' children.
func usage(d *detector) (cpu, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return cpu{}, fmt.Errorf("read processor times, for which Linux is needed: %w", err)
	}
	all, err := fs.AllProcs()
	if err != nil {
		return cpu{}, fmt.Errorf("list the processes: %w", err)
	}
	var used cpu
	for _, p := range all {
		stat, err := p.Stat()
		if err != nil || stat.PPID != os.Getpid() { // a process that ended meanwhile is none of ours
			continue
		}
		spent := time.Duration(stat.CPUTime() * float64(time.Second))
		switch {
		case d != nil && stat.PID == d.cmd.Process.Pid:
			used.detector = spent
		case stat.Comm == string(localcluster.APIServer):
			used.server = spent
		case stat.Comm == string(localcluster.Etcd):
			used.etcd = spent
		}
	}
	if used.server == 0 || used.etcd == 0 || d != nil && used.detector == 0 {
		return used, fmt.Errorf("not all processes were found: %+v", used)
	}
	return used, nil
}
