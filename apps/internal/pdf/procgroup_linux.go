package pdf

import (
	"os/exec"
	"syscall"
)

// setProcessGroup gives a program its own process group, which is killed as a whole and ends with this process.
func setProcessGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
