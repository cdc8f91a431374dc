//go:build unix

package media

import "golang.org/x/sys/unix"

// freeSpace returns the bytes that are free where a folder is.
func freeSpace(folder string) (free uint64, ok bool) {
	var s unix.Statfs_t
	if unix.Statfs(folder, &s) != nil {
		return 0, false
	}
	return uint64(s.Bavail) * uint64(s.Bsize), true //nolint:unconvert // the types differ between systems
}
