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

// alias is the name under which this program sets limits and becomes another.
const alias = "holdfast-exec"

// Main makes a process that was started under the name holdfast-exec into the program it was started for, under limits, and does not return. In any
// other process it only notes that this can be done. It must come first in main, before anything is opened.
func Main() {
	if len(os.Args) == 0 || os.Args[0] != alias {
		ready.Store(true)
		return
	}
	err := become(os.Args[1:])
	fmt.Fprintf(os.Stderr, "%s: %v\n", alias, err)
	os.Exit(126)
}

// command is what to start for this program. The limits travel before its own name and arguments.
func (p Program) command(args []string) (name string, all []string) {
	whole := append(append([]string{p.Path}, p.Args...), args...)
	if p.Limits == (Limits{}) {
		return p.Path, whole
	}
	l := p.Limits
	return self(), append([]string{alias, fmt.Sprintf("%d,%d,%d,%d", int64(l.CPU/time.Second), l.Files, l.FileSize, l.Memory)}, whole...)
}

// become sets limits and turns this process into the program.
func become(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("this name is for holdfast itself: start %s under its own", alias)
	}
	debug.SetGCPercent(-1) // nothing may ask for memory once that is limited
	words := strings.Split(args[0], ",")
	// Memory comes last: under its limit this process, which needs more than most programs, has hardly a breath left.
	kinds := []int{syscall.RLIMIT_CPU, syscall.RLIMIT_NOFILE, syscall.RLIMIT_FSIZE, syscall.RLIMIT_AS}
	if len(words) != len(kinds) {
		return fmt.Errorf("%q are no limits", args[0])
	}
	var limits [4]syscall.Rlimit
	for i, word := range words {
		value, err := strconv.ParseUint(word, 10, 63)
		if err != nil {
			return fmt.Errorf("%q are no limits", args[0])
		}
		limits[i] = syscall.Rlimit{Cur: value, Max: value}
		switch {
		case kinds[i] == syscall.RLIMIT_CPU:
			limits[i].Max++ // a warning first, then the end
		case kinds[i] == syscall.RLIMIT_NOFILE && value == 0: // Go has raised it for itself; programs expect the usual
			if syscall.Getrlimit(kinds[i], &limits[i]) == nil {
				limits[i].Cur = min(limits[i].Cur, 1024)
			}
		}
	}
	return turn(args[1], args[1:], func() error {
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
