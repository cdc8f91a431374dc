//go:build !linux && !darwin

package pdf

import "time"

// Confine does nothing here: this system has no such limits. What the reader itself bounds still holds, and whoever started this process can end it.
func Confine(uint64, time.Duration) error { return nil }
