package pdf

import (
	"bytes"
	"os"
	"strconv"
)

// unenforced are limits that this system may refuse to set.
func unenforced(int) bool { return false }

// addresses are those this process has taken already, in bytes. Go takes many at its start.
func addresses() uint64 {
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
