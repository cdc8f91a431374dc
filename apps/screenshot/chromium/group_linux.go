package chromium

import (
	"errors"
	"os"
	"syscall"
	"time"
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

// killRest waits for the end of the group after its main process has ended. Where this process adopts orphans, as the first process of a container does, they remain as
// zombies unless it waits for them.
func (g *processGroup) killRest(main *os.Process) {
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
