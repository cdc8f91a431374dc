//go:build linux || darwin || freebsd

package sqlite

import "syscall"

// freeBytes returns how much a process without privileges may still write on the file system of a directory.
func freeBytes(dir string) (bytes int64, known bool) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return 0, false
	}
	return int64(stat.Bavail) * int64(stat.Bsize), true //nolint:unconvert // the types differ between systems
}
