package browser

import (
	"fmt"
	"os"
	"path/filepath"
)

// prefix begins the names of the folders of pools.
const prefix = "shots-"

// An ownedFolder is the folder of a pool. A lock says that its process still runs, so that the next pool can delete the folders of processes that were killed.
type ownedFolder struct {
	path string
	lock *os.File
}

// ownFolder creates a folder in another one, and deletes those of processes that have ended without doing so.
func ownFolder(in string) (*ownedFolder, error) {
	if in == "" {
		in = os.TempDir()
	}
	if err := os.MkdirAll(in, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create the folder of browsers: %w", err)
	}
	left, _ := filepath.Glob(filepath.Join(in, prefix+"*"))
	for _, folder := range left {
		file, err := os.OpenFile(filepath.Join(folder, "lock"), os.O_RDWR, 0)
		if err != nil {
			continue // being created, being deleted, or not ours
		}
		if lock(file) {
			_ = os.RemoveAll(folder)
		}
		_ = file.Close()
	}
	path, err := os.MkdirTemp(in, prefix)
	if err != nil {
		return nil, fmt.Errorf("cannot create the folder of browsers: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(path, "new"), os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil && lock(file) { // before it has the name that others look for
		err = os.Rename(file.Name(), filepath.Join(path, "lock"))
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock the folder of browsers: %w", err)
	}
	return &ownedFolder{path, file}, nil
}

func (f *ownedFolder) remove() {
	_ = f.lock.Close()
	_ = os.RemoveAll(f.path)
}
