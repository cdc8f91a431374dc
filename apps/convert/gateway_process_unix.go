//go:build !windows

package main

import (
	"fmt"
	"os/exec"
	"syscall"
)

// setProcessGroup gives a process its own process group, so that Ctrl-C in our terminal does not reach it.
func setProcessGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killCommand returns the shell command that ends a process.
func killCommand(pid int) string { return fmt.Sprintf("kill %d", pid) }
