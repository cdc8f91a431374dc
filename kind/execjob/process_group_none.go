//go:build !unix

package execjob

import (
	"io/fs"
	"os/exec"
)

func executable(fs.FileInfo) bool { return true }

func newProcessGroup(*exec.Cmd) {}

func stopGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func waitAndCleanUp(cmd *exec.Cmd) error { return cmd.Wait() }
