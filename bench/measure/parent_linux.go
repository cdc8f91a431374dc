package measure

import (
	"os/exec"
	"syscall"
)

// endWithParent lets the kernel kill a worker process when its parent process ends, so that an aborted run does not disturb the next one.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
