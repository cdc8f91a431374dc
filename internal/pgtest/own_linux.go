package pgtest

import (
	"os/exec"
	"syscall"
)

// endWithUs has the kernel stop the server at once when the thread that started it is gone.
func endWithUs(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGQUIT
}
