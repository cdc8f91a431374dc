package child

import (
	"os"
	"os/exec"
	"unsafe"

	"golang.org/x/sys/windows"
)

// A Group is a process and those that it starts: on Windows a job object, which ends them all when its last handle is closed, also by the end of this process.
type Group struct{ job windows.Handle }

// Prepare is called before the start of cmd.
func (g *Group) Prepare(*exec.Cmd) {}

// Started is called after the start.
func (g *Group) Started(main *os.Process) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return // kill then ends the main process, and its children end when they lose it
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err == nil {
		var process windows.Handle
		if process, err = windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(main.Pid)); err == nil {
			err = windows.AssignProcessToJobObject(job, process)
			_ = windows.CloseHandle(process)
		}
	}
	if err != nil {
		_ = windows.CloseHandle(job)
		return
	}
	g.job = job
}

// Kill ends all processes at once.
func (g *Group) Kill(main *os.Process) {
	if g.job != 0 {
		_ = windows.TerminateJobObject(g.job, 1)
	}
	_ = main.Kill()
}

// KillRest is called after the main process has ended.
func (g *Group) KillRest(*os.Process) {
	if g.job != 0 {
		_ = windows.CloseHandle(g.job)
		g.job = 0
	}
}

func waitForEnd(cmd *exec.Cmd, g *Group) error {
	err := cmd.Wait()
	g.Kill(cmd.Process)
	g.KillRest(cmd.Process)
	return err
}

func (Limits) apply(*os.Process) {}

// signalOf returns 0: Windows has no signals.
func signalOf(*os.ProcessState) int { return 0 }

func lowPriority(*os.Process) {}
