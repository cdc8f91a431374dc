package pdf

import "golang.org/x/sys/unix"

// unenforced are limits that this system may refuse to set: macOS has no say over the memory of a process that has already more.
func unenforced(what int) bool { return what == unix.RLIMIT_AS || what == unix.RLIMIT_DATA }

// addresses that a process takes at its start are many here.
func addresses() uint64 { return 512 << 30 }
