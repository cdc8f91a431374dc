//go:build unix && !linux

package chromium

import (
	"os"
	"syscall"
)

// endWithParent does nothing on this system. Chromium ends itself when its pipes are closed.
func endWithParent(*syscall.SysProcAttr) {}

// killOthers does nothing on this system: processes outside of the group cannot be found.
func killOthers(int) {}

// killRest does nothing: kill ended the group.
func (g *processGroup) killRest(*os.Process) {}
