//go:build linux || darwin

package execjob

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const canLimit = true

// limiterName is the name, os.Args[0], under which this program starts itself to set limits and then execute another program.
const limiterName = "holdfast-exec"

// Main makes limits available. In a process that was started under the name holdfast-exec it sets the limits, executes the program, and does not return. In any
// other process it only records that it was called. It must be called first in main, before any file is opened.
func Main() {
	if len(os.Args) == 0 || os.Args[0] != limiterName {
		ready.Store(true)
		return
	}
	err := execWithLimits(os.Args[1:])
	fmt.Fprintf(os.Stderr, "%s: %v\n", limiterName, err)
	os.Exit(126)
}

// command returns the file to start and its arguments. If the program has limits, it is this program under limiterName, with the limits before the path and the
// arguments of the program.
func (p Program) command(args []string) (name string, all []string) {
	whole := append(append([]string{p.Path}, p.Args...), args...)
	if p.Limits == (Limits{}) {
		return p.Path, whole
	}
	l := p.Limits
	return selfPath(), append([]string{limiterName, fmt.Sprintf("%d,%d,%d,%d", int64(l.CPU/time.Second), l.Files, l.FileSize, l.Memory)}, whole...)
}

// execWithLimits sets the limits and executes the program in this process.
func execWithLimits(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("the name %s is reserved for holdfast: start the program under its own name", limiterName)
	}
	debug.SetGCPercent(-1) // no memory may be requested once it is limited
	words := strings.Split(args[0], ",")
	// Memory comes last: this process needs more than most programs, so with the limit set it can hardly continue.
	kinds := []int{syscall.RLIMIT_CPU, syscall.RLIMIT_NOFILE, syscall.RLIMIT_FSIZE, syscall.RLIMIT_AS}
	if len(words) != len(kinds) {
		return fmt.Errorf("%q is not a list of limits", args[0])
	}
	var limits [4]syscall.Rlimit
	for i, word := range words {
		value, err := strconv.ParseUint(word, 10, 63)
		if err != nil {
			return fmt.Errorf("%q is not a list of limits", args[0])
		}
		limits[i] = syscall.Rlimit{Cur: value, Max: value}
		switch {
		case kinds[i] == syscall.RLIMIT_CPU:
			limits[i].Max++ // SIGXCPU at the soft limit, SIGKILL a second later
		case kinds[i] == syscall.RLIMIT_NOFILE && value == 0: // the Go runtime has raised it for itself; programs expect the usual limit
			if syscall.Getrlimit(kinds[i], &limits[i]) == nil {
				limits[i].Cur = min(limits[i].Cur, 1024)
			}
		}
	}
	return replaceProcess(args[1], args[1:], func() error {
		for i, what := range kinds {
			if limits[i].Cur == 0 {
				continue
			}
			if err := syscall.Setrlimit(what, &limits[i]); err != nil {
				return err
			}
		}
		return nil
	})
}
