//go:build !linux

package main

import "syscall"

// childAttributes put the child into a process group of its own, so that Ctrl-C in a terminal reaches the parent alone. Only
// Linux can also end the child when the parent is killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
