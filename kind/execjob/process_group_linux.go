package execjob

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// killWithParent has the kernel kill the program when the worker ends, even if the worker is killed.
func killWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// waitAndCleanUp waits for the end of a program and kills the processes that it left running. It kills them before it reaps the program: until then the system
// cannot give its process id to another process, so no unrelated process group is killed.
func waitAndCleanUp(cmd *exec.Cmd) error {
	for errors.Is(unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	killGroup(cmd)
	killDescendants(attemptMarkers(cmd)) // before Wait, which waits for the outputs that these processes may hold open
	return cmd.Wait()
}
