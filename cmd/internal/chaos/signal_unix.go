//go:build unix

package chaos

import (
	"os"
	"syscall"
)

// gracefulSignals ask a process to release its jobs and end.
var gracefulSignals = []os.Signal{syscall.SIGTERM, os.Interrupt}

// The signals that a run sends.
var (
	sigKill os.Signal = syscall.SIGKILL
	sigStop os.Signal = syscall.SIGSTOP
	sigCont os.Signal = syscall.SIGCONT
	sigTerm os.Signal = syscall.SIGTERM
)

// checkPlatform returns an error if this system lacks the signals that a run needs.
func checkPlatform() error { return nil }
