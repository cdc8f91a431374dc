//go:build unix

package execjob

import (
	"io/fs"
	"os/exec"
	"syscall"
)

func executable(info fs.FileInfo) bool { return info.Mode()&0o111 != 0 }

// newProcessGroup starts the program in a process group of its own.
func newProcessGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	killWithParent(cmd.SysProcAttr)
}

// stopGroup asks all processes of the group to end.
func stopGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

// killGroup kills all processes of the group.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
