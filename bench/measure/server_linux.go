package measure

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ticks is the number of units of CPU time per second in /proc.
const ticks = 100

// ServerSeconds returns the CPU time of a database server so far: of its first process, of the children that have ended, and of those that run. A child that ends during
// the count would be missed, so the count is repeated until no child has ended.
func ServerSeconds(pid int) float64 {
	if pid == 0 {
		return 0
	}
	sum := 0
	for range 100 {
		own, ended, _ := spent(strconv.Itoa(pid))
		sum = own + ended + children(pid)
		if _, again, _ := spent(strconv.Itoa(pid)); again == ended {
			break
		}
	}
	return float64(sum) / ticks
}

func children(pid int) (sum int) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		if own, ended, parent := spent(filepath.Base(dir)); parent == pid {
			sum += own + ended
		}
	}
	return sum
}

// Busy returns for how many seconds the machine's cores have worked so far, for all programs. Time that a host took away (steal) counts as work.
func Busy() float64 {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(text), "\n")
	sum := 0
	for i, field := range strings.Fields(line) {
		n, _ := strconv.Atoi(field)
		if i >= 1 && i <= 8 && i != 4 && i != 5 { // without idle and iowait
			sum += n
		}
	}
	return float64(sum) / ticks
}

// spent returns the CPU time of a process, that of its ended children, and the id of its parent.
func spent(pid string) (own, ended, parent int) {
	text, _ := os.ReadFile("/proc/" + pid + "/stat")
	_, rest, _ := strings.Cut(string(text), ") ")
	f := strings.Fields(rest)
	if len(f) < 15 {
		return 0, 0, 0
	}
	n := func(i int) int { v, _ := strconv.Atoi(f[i]); return v }
	return n(11) + n(12), n(13) + n(14), n(1)
}
