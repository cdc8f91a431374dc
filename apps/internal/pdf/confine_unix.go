//go:build linux || darwin

package pdf

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

const (
	confinedFile  = 512 << 20 // bytes that one file may become that the process writes
	confinedFiles = 128       // that it may have open
)

// Confine bounds what this very process, and those it starts, may use from here on: memory in bytes, time on the processor, what it writes, and
// how many files it has open. It cannot be undone. What Go has set aside already without using it does not count as memory. macOS does not hold a
// process to its memory.
func Confine(memory uint64, cpu time.Duration) error {
	seconds := uint64((cpu + time.Second - 1) / time.Second)
	for _, l := range []struct {
		name string
		what int
		most uint64
	}{
		{"memory", unix.RLIMIT_DATA, memory},
		{"addresses", unix.RLIMIT_AS, memory + addresses()},
		{"processor time", unix.RLIMIT_CPU, seconds},
		{"the size of files", unix.RLIMIT_FSIZE, confinedFile},
		{"open files", unix.RLIMIT_NOFILE, confinedFiles},
		{"memory dumps", unix.RLIMIT_CORE, 0},
	} {
		var now unix.Rlimit
		if err := unix.Getrlimit(l.what, &now); err != nil {
			return fmt.Errorf("asking for the limit on %s: %w", l.name, err)
		}
		most := min(l.most, now.Max)
		if err := unix.Setrlimit(l.what, &unix.Rlimit{Cur: most, Max: most}); err != nil && !unenforced(l.what) {
			return fmt.Errorf("limiting %s: %w", l.name, err)
		}
	}
	return nil
}
