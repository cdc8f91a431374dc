//go:build !unix

package gateway

import (
	"os"
	"os/exec"
)

// setProcessGroup does nothing: on this system a process is killed alone, and the programs that it started end with their context.
func setProcessGroup(*exec.Cmd) {}

func killGroup(*exec.Cmd) {}

func killOwnGroup() { os.Exit(1) }
