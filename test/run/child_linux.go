package main

import "syscall"

// childAttributes put the child into a process group of its own, so that Ctrl-C in a terminal reaches the parent alone, and
// have the kernel end it when the parent dies: nothing must go on changing a cluster then.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
