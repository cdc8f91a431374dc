package browser

import (
	"os"

	"golang.org/x/sys/windows"
)

// lock locks a file until it is closed or the process ends, and reports whether no other process has locked it.
func lock(file *os.File) bool {
	return windows.LockFileEx(windows.Handle(file.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, new(windows.Overlapped)) == nil
}
