//go:build !unix

package measure

// cpuSeconds is not supported on this system.
func cpuSeconds() float64 { return 0 }
