//go:build unix

package browser

import (
	"os"
	"syscall"
)

// lock locks a file until it is closed or the process ends, and reports whether no other process has locked it.
func lock(file *os.File) bool {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
