package s3test

import (
	"os/exec"
	"syscall"
)

// endWithParent lets the kernel kill the server when the thread that started it ends.
func endWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
