//go:build !unix

package spool

import (
	"fmt"
	"io"
	"os"
)

// lockFolder opens the lock's file. On this system it does not keep another process from using the folder.
func lockFolder(path string) (io.Closer, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the lock of the spool: %w", err)
	}
	return file, nil
}
