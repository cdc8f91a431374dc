//go:build unix

package measure

import "syscall"

// cpuSeconds is what this process has used so far, in user mode and in the kernel.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
