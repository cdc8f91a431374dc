//go:build unix

package chaos

import (
	"os"
	"syscall"
)

// gracefulSignals ask a process to hand back what it has and end.
var gracefulSignals = []os.Signal{syscall.SIGTERM, os.Interrupt}

// What a run does to processes.
var (
	sigKill os.Signal = syscall.SIGKILL
	sigStop os.Signal = syscall.SIGSTOP
	sigCont os.Signal = syscall.SIGCONT
	sigTerm os.Signal = syscall.SIGTERM
)

// able reports whether this system has the signals a run is made of.
func able() error { return nil }
