package measure

import (
	"os/exec"
	"syscall"
)

// endWithUs has the kernel kill a worker process when the one that started it is gone, so that a run that was given up does
// not disturb the next.
func endWithUs(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
