//go:build unix && !linux

package child

import (
	"os"
	"os/exec"
	"syscall"
)

// endWithParent does nothing on this system, which has no such call.
func endWithParent(*syscall.SysProcAttr) {}

// killOthers does nothing on this system: processes outside of the group cannot be found.
func killOthers(int) {}

// KillRest does nothing: Kill ended the group.
func (g *Group) KillRest(*os.Process) {}

func waitForEnd(cmd *exec.Cmd, _ *Group) error {
	err := cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	return err
}

// apply does nothing: this system cannot limit a process that runs.
func (Limits) apply(*os.Process) {}
