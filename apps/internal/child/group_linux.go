package child

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// endWithParent ends the process when ours ends, however that happens.
func endWithParent(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGKILL }

// killOthers ends the processes that a process started outside of its group.
func killOthers(leader int) {
	for _, pid := range membersOf(leader) {
		if state, ok := stateOf(pid); ok && state.group != leader {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// KillRest waits for the end of the group after its main process has ended. Where this process adopts orphans, as the first process of a container does, they remain as
// zombies unless it waits for them.
func (g *Group) KillRest(main *os.Process) {
	for range 500 {
		left := 0
		for pid, state := range processes() {
			if state.group != main.Pid {
				continue
			}
			_ = syscall.Kill(pid, syscall.SIGKILL)
			_, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
			if !state.zombie || !errors.Is(err, syscall.ECHILD) { // a zombie that is not our child is its parent's
				left++
			}
		}
		if left == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// waitForEnd waits for the end of a program and kills the processes that it left. They are killed before the program is reaped: until then the system cannot give its number
// to another process.
func waitForEnd(cmd *exec.Cmd, g *Group) error {
	for errors.Is(unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	g.Kill(cmd.Process)
	err := cmd.Wait()
	g.KillRest(cmd.Process)
	return err
}

func (l Limits) apply(p *os.Process) {
	for what, most := range map[int]uint64{unix.RLIMIT_DATA: l.Memory, unix.RLIMIT_FSIZE: l.FileSize} {
		if most > 0 {
			_ = unix.Prlimit(p.Pid, what, &unix.Rlimit{Cur: most, Max: most}, nil)
		}
	}
	_ = unix.Prlimit(p.Pid, unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
}
