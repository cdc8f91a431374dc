package pdf

import (
	"bytes"
	"os"
	"strconv"
)

// unenforced reports whether the system may refuse a limit.
func unenforced(int) bool { return false }

// addressSpace returns the address space of this process, in bytes. Go reserves much at its start.
func addressSpace() uint64 {
	sizes, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 4 << 30
	}
	first, _, _ := bytes.Cut(sizes, []byte(" "))
	pages, err := strconv.ParseUint(string(first), 10, 64)
	if err != nil {
		return 4 << 30
	}
	return pages * uint64(os.Getpagesize())
}
