package execjob

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// hideEnvironment keeps programs that run as the same user from reading the environment of this process, which may hold secrets, in /proc. Root still can. It also
// switches core dumps and debuggers of other users off.
func hideEnvironment() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

// endDescendants kills what an attempt left running outside its process group, such as a daemon with a session of its own. It finds them by the variables that every
// program of the attempt inherits; a program that clears its environment gets away.
func endDescendants(marks []string) {
	for range 20 { // whoever is killed may have started another a moment before
		found := false
		processes, err := os.ReadDir("/proc")
		if err != nil {
			return
		}
		for _, p := range processes {
			if pid, err := strconv.Atoi(p.Name()); err == nil && pid != os.Getpid() && endMarked(pid, marks) {
				found = true
			}
		}
		if !found {
			return
		}
	}
}

// endMarked kills a process that has all the marks in its environment. The handle names the process itself: its number may be another's by then.
func endMarked(pid int, marks []string) bool {
	if !marked(pid, marks) {
		return false
	}
	handle, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(handle)                                                               //nolint:errcheck // nothing was written
	return marked(pid, marks) && unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0) == nil // still the one that was looked at
}

// marked reports whether a process that has not ended has all the marks in its environment.
func marked(pid int, marks []string) bool {
	environment, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ") // empty when it has ended
	if err != nil || len(environment) == 0 {
		return false
	}
	environment = append([]byte{0}, environment...)
	for _, mark := range marks {
		if !bytes.Contains(environment, append(append([]byte{0}, mark...), 0)) {
			return false
		}
	}
	return true
}
