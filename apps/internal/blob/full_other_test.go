//go:build !linux

package blob

// fill is implemented for Linux only.
func fill() {}
