//go:build !linux

package measure

// Memory is not measured on this system.

func resident() float64 { return 0 }

func peak() float64 { return 0 }

func forgetPeak() {}
