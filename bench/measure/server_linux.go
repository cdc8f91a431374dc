package measure

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ticks is how many units of CPU time a second has in what the kernel tells.
const ticks = 100

// serverSeconds is what a database server has used so far: its first process, the children that ended, and those that
// run.
func serverSeconds(pid int) float64 {
	if pid == 0 {
		return 0
	}
	own, ended, _ := spent(strconv.Itoa(pid))
	sum := own + ended
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		if own, ended, parent := spent(filepath.Base(dir)); parent == pid {
			sum += own + ended
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
