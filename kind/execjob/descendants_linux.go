package execjob

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// hideEnvironment prevents programs that run as the same user from reading the environment of this process, which may contain secrets, in /proc. Root still can. It
// also disables core dumps of this process and debuggers of other users.
func hideEnvironment() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

// killDescendants kills processes that an attempt left running outside its process group, such as a daemon in a new session. It finds them by the environment
// variables that every process of the attempt inherits. A process that clears its environment is not found.
func killDescendants(markers []string) {
	for range 20 { // a killed process may have started another one just before
		found := false
		processes, err := os.ReadDir("/proc")
		if err != nil {
			return
		}
		for _, p := range processes {
			if pid, err := strconv.Atoi(p.Name()); err == nil && pid != os.Getpid() && killMarked(pid, markers) {
				found = true
			}
		}
		if !found {
			return
		}
	}
}

// killMarked kills a process that has all the markers in its environment. It signals by a pidfd, because the process id may have been reused meanwhile.
func killMarked(pid int, markers []string) bool {
	if !hasMarkers(pid, markers) {
		return false
	}
	handle, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(handle)                                                                     //nolint:errcheck // nothing was written
	return hasMarkers(pid, markers) && unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0) == nil // still the same process
}

// hasMarkers reports whether a process that has not ended has all the markers in its environment.
func hasMarkers(pid int, markers []string) bool {
	environment, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ") // empty if the process has ended
	if err != nil || len(environment) == 0 {
		return false
	}
	environment = append([]byte{0}, environment...)
	for _, mark := range markers {
		if !bytes.Contains(environment, append(append([]byte{0}, mark...), 0)) {
			return false
		}
	}
	return true
}
