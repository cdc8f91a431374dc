//go:build !linux

package measure

// ServerSeconds is not supported on this system.
func ServerSeconds(int) float64 { return 0 }

// Busy is not supported on this system.
func Busy() float64 { return 0 }
