package kubectlquell_test

import (
	"os/exec"
	"syscall"
)

// maxMemory is the greatest resident size of an ended process, in bytes.
func maxMemory(cmd *exec.Cmd) int64 {
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return usage.Maxrss << 10
}
