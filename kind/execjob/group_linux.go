package execjob

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// tie ends a program with the worker, also one that is killed.
func tie(how *syscall.SysProcAttr) { how.Pdeathsig = syscall.SIGKILL }

// bury waits for the end of a program and ends what it left running. That comes before the program is waited for: until then its number is nobody
// else's, and no stranger's group is killed.
func bury(cmd *exec.Cmd) error {
	for errors.Is(unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	killGroup(cmd)
	endDescendants(marksOf(cmd)) // before the outputs are waited for, which they may hold
	return cmd.Wait()
}
