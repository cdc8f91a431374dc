//go:build !linux

package pdf

import "os/exec"

// setProcessGroup does nothing on this system. Each of poppler's programs is a single process, so killing it is enough.
func setProcessGroup(*exec.Cmd) {}
