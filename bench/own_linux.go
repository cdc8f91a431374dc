package main

import (
	"os/exec"
	"syscall"
)

// endWithUs has the kernel kill a server or a contender when this process is gone.
func endWithUs(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
