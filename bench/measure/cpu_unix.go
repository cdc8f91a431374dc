//go:build unix

package measure

import "syscall"

// cpuSeconds returns the CPU time of this process so far, in user mode and in the kernel.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
