package s3test

import (
	"os/exec"
	"syscall"
)

// endWithUs has the kernel stop the server at once when the thread that started it is gone.
func endWithUs(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
