package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/holdfastdev/holdfast/store/anystore"
)

// exposureWarning returns a warning if other users of the machine can read or write the file of an SQLite store, and an empty text otherwise. Holdfast
// creates its files for their user only, but never changes the mode of an existing file: another program may depend on it.
func exposureWarning(address string) string {
	path, err := anystore.File(address)
	if err != nil || path == "" || runtime.GOOS == "windows" {
		return ""
	}
	const others = 0o007
	if dir, err := os.Stat(filepath.Dir(path)); err != nil || dir.Mode().Perm()&others == 0 {
		return "" // other users cannot enter the directory
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if file, err := os.Stat(name); err == nil && file.Mode().Perm()&others != 0 {
			return fmt.Sprintf("every user of this machine can access %s (mode %04o), which contains the data of jobs: run 'chmod o= %s*'", name, file.Mode().Perm(), path)
		}
	}
	return ""
}
