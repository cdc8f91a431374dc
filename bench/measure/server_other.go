//go:build !linux

package measure

// ServerSeconds is not known here.
func ServerSeconds(int) float64 { return 0 }

// Busy is not known here.
func Busy() float64 { return 0 }
