package measure

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ticks is how many units of CPU time a second has in what the kernel tells.
const ticks = 100

// ServerSeconds is what a database server has used so far: its first process, the children that ended, and those that
// run. A child that ends in the middle of the count would be missed, so it is counted again until none did.
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

// Busy is for how many seconds the machine's cores have worked so far, for whomever; what a host took away counts as work.
func Busy() float64 {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(text), "\n")
	sum := 0
	for i, field := range strings.Fields(line) {
		n, _ := strconv.Atoi(field)
		if i >= 1 && i <= 8 && i != 4 && i != 5 { // without idling and waiting for the disk
			sum += n
		}
	}
	return float64(sum) / ticks
}

// spent reads one process: its own time, that of its children that ended, and its parent.
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
