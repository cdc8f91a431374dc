//go:build unix

package child

import (
	"os"
	"os/exec"
	"syscall"
)

// A Group is a process and those that it starts.
type Group struct{}

// Prepare is called before the start of cmd.
func (g *Group) Prepare(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithParent(cmd.SysProcAttr)
}

// Started is called after the start.
func (g *Group) Started(*os.Process) {}

// Kill ends all processes at once. The main process must not have been waited for, so that its number belongs to it.
func (g *Group) Kill(main *os.Process) {
	killOthers(main.Pid)
	_ = syscall.Kill(-main.Pid, syscall.SIGKILL)
}

// signalOf returns the signal that ended a process, or 0.
func signalOf(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return int(status.Signal())
	}
	return 0
}

// lowPriority lets other processes go first.
func lowPriority(p *os.Process) { _ = syscall.Setpriority(syscall.PRIO_PGRP, p.Pid, 10) }
