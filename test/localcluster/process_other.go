//go:build !linux

package localcluster

import "syscall"

// childAttributes puts the child into a process group of its own, so that Ctrl-C in a terminal reaches the parent alone
// and the order of the stop is kept. Only Linux can also end the child when the parent is killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
