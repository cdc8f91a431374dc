//go:build unix

package chromium

import (
	"os"
	"os/exec"
	"syscall"
)

// A processGroup is a process and those that it starts.
type processGroup struct{}

func (g *processGroup) prepare(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithParent(cmd.SysProcAttr)
}

func (g *processGroup) started(*os.Process) {}

// kill ends all processes at once. The main process was not waited for yet, so that its number belongs to it.
func (g *processGroup) kill(main *os.Process) {
	killOthers(main.Pid)
	_ = syscall.Kill(-main.Pid, syscall.SIGKILL)
}
