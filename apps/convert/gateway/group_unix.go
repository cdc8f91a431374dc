//go:build unix

package gateway

import (
	"os"
	"os/exec"
	"syscall"
)

// setProcessGroup gives a process its own process group, so that the process and everything it starts are killed together.
func setProcessGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// killGroup kills the processes that an ended process has left behind. Its id is not reused so soon after its end.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// killOwnGroup ends this process and everything it started.
func killOwnGroup() {
	_ = syscall.Kill(0, syscall.SIGKILL)
	os.Exit(1)
}
