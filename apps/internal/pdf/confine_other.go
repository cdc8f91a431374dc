//go:build !linux && !darwin

package pdf

import "time"

// Confine does nothing on this system, which has no such limits. The reader's own limits still apply, and the parent process can end this process.
func Confine(uint64, time.Duration) error { return nil }
