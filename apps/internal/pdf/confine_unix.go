//go:build linux || darwin

package pdf

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

const (
	maxFileSize  = 512 << 20 // bytes of a file that the process writes
	maxOpenFiles = 128
)

// Confine limits what this process, and every process that it starts, may use from now on: memory in bytes, CPU time, the size of files that it writes, and open files. It
// cannot be undone. Memory that Go has reserved and not used does not count. macOS does not enforce the limit of memory.
func Confine(memory uint64, cpu time.Duration) error {
	seconds := uint64((cpu + time.Second - 1) / time.Second)
	for _, l := range []struct {
		name string
		what int
		max  uint64
	}{
		{"memory", unix.RLIMIT_DATA, memory},
		{"address space", unix.RLIMIT_AS, memory + addressSpace()},
		{"CPU time", unix.RLIMIT_CPU, seconds},
		{"the size of files", unix.RLIMIT_FSIZE, maxFileSize},
		{"open files", unix.RLIMIT_NOFILE, maxOpenFiles},
		{"core dumps", unix.RLIMIT_CORE, 0},
	} {
		var now unix.Rlimit
		if err := unix.Getrlimit(l.what, &now); err != nil {
			return fmt.Errorf("reading the limit of %s: %w", l.name, err)
		}
		limit := min(l.max, now.Max)
		if err := unix.Setrlimit(l.what, &unix.Rlimit{Cur: limit, Max: limit}); err != nil && !unenforced(l.what) {
			return fmt.Errorf("limiting %s: %w", l.name, err)
		}
	}
	return nil
}
