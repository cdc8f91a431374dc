package main

import (
	"os/exec"
	"syscall"
)

// endWithParent lets the kernel kill a server or a contender when this process ends.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
