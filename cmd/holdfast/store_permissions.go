package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/holdfastdev/holdfast/store"
)

// exposed is a sentence about a store whose file every user of the machine may read or write, and empty for any other. Holdfast makes its files
// for their user alone, but does not change the mode of a file that is there: another program may depend on it.
func exposed(address string) string {
	path, err := store.File(address)
	if err != nil || path == "" || runtime.GOOS == "windows" {
		return ""
	}
	const others = 0o007
	if dir, err := os.Stat(filepath.Dir(path)); err != nil || dir.Mode().Perm()&others == 0 {
		return "" // nobody else gets as far as the file
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if file, err := os.Stat(name); err == nil && file.Mode().Perm()&others != 0 {
			return fmt.Sprintf("every user of this machine can read %s (mode %04o), and with it what jobs carry: run 'chmod o= %s*'", name, file.Mode().Perm(), path)
		}
	}
	return ""
}
