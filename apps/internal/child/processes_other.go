//go:build !linux

package child

// UsageOf measures a process and all processes that it started. ok is false on systems that cannot tell, such as this one.
func UsageOf(int) (u Usage, ok bool) { return Usage{}, false }
