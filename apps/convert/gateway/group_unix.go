//go:build unix

package gateway

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup gives a process and all it starts a group of their own, and has them killed together.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// endGroup kills what a process has left behind. Its number is not given to another so soon after it ended.
func endGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// endAll ends this process and all it started.
func endAll() {
	_ = syscall.Kill(0, syscall.SIGKILL)
	os.Exit(1)
}
