//go:build !linux

package blob

// fill is for Linux.
func fill() {}
