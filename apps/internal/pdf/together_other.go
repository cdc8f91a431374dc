//go:build !linux

package pdf

import "os/exec"

// together leaves a program as it is: its end is that of its one process, which poppler's programs are.
func together(*exec.Cmd) {}
