//go:build unix && !linux

package execjob

import (
	"os/exec"
	"syscall"
)

// killWithParent does nothing: only Linux can kill a program when its parent ends.
func killWithParent(*syscall.SysProcAttr) {}

// waitAndCleanUp waits for the end of a program and kills the processes of its group that it left running.
func waitAndCleanUp(cmd *exec.Cmd) error {
	err := cmd.Wait()
	killGroup(cmd)
	return err
}
