package pdf

import "golang.org/x/sys/unix"

// unenforced reports whether the system may refuse a limit: macOS cannot limit the memory of a process that already uses more.
func unenforced(what int) bool { return what == unix.RLIMIT_AS || what == unix.RLIMIT_DATA }

// addressSpace is what a process reserves at its start, which is much on macOS.
func addressSpace() uint64 { return 512 << 30 }
