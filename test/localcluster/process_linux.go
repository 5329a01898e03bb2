package localcluster

import "syscall"

// childAttributes puts the child into a process group of its own, so that Ctrl-C in a terminal reaches the parent alone
// and the order of the stop is kept, and has the kernel kill it when the parent dies.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
