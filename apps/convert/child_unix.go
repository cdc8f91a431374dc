//go:build !windows

package main

import (
	"fmt"
	"os/exec"
	"syscall"
)

// apart gives a process a group of its own: what is typed at our terminal is not for it.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killing is how people end a process here.
func killing(pid int) string { return fmt.Sprintf("kill %d", pid) }
