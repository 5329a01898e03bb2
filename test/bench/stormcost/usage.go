package main

import (
	"time"

	"github.com/hduolab/quell/test/localcluster"
)

// cpu is processor time since the start of each.
type cpu struct{ server, etcd, detector time.Duration }

// usage reads processor times; d is nil where no detector runs.
func usage(cluster *localcluster.Cluster, d *detector) (used cpu, err error) {
	if used.server, err = cluster.CPUTime(localcluster.APIServer); err != nil {
		return used, err
	}
	if used.etcd, err = cluster.CPUTime(localcluster.Etcd); err != nil || d == nil {
		return used, err
	}
	used.detector, err = localcluster.CPUTime(d.cmd.Process.Pid)
	return used, err
}
