//go:build unix

package execjob

import (
	"io/fs"
	"os/exec"
	"syscall"
)

func executable(info fs.FileInfo) bool { return info.Mode()&0o111 != 0 }

// own gives a program a process group of its own.
func own(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	tie(cmd.SysProcAttr)
}

// stopGroup asks all of a program's group to end.
func stopGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

// killGroup ends all of it.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
