//go:build unix

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// children returns the processes that a process has started and that still run; none on systems without /proc.
func children(pid int) (list []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is valid
	for _, file := range files {
		text, _ := os.ReadFile(file)
		for _, one := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(one); err == nil {
				list = append(list, n)
			}
		}
	}
	return list
}

// tick is the unit of processor times in /proc.
const tick = 10 * time.Millisecond

// processorTime returns the processor time of a process, of the processes that it started, and of those among them that have ended; 0 on systems without /proc.
func processorTime(pid int) (sum time.Duration) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ") // after the name
	fields := strings.Fields(rest)
	for _, at := range []int{11, 12, 13, 14} { // utime, stime, cutime, cstime
		if at < len(fields) {
			n, _ := strconv.Atoi(fields[at])
			sum += time.Duration(n) * tick
		}
	}
	for _, child := range children(pid) {
		sum += processorTime(child)
	}
	return sum
}
