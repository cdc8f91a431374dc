//go:build unix && !linux

package execjob

import (
	"os/exec"
	"syscall"
)

func tie(*syscall.SysProcAttr) {}

// bury waits for the end of a program and ends what it left running.
func bury(cmd *exec.Cmd) error {
	err := cmd.Wait()
	killGroup(cmd)
	return err
}
