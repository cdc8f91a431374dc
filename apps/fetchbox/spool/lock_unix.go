//go:build unix

package spool

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// lockFolder locks a folder for this process, by a file in it. The system releases the lock when the process ends, however that happens.
func lockFolder(path string) (io.Closer, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the lock of the spool: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = errors.New("another process uses this folder: give each process a spool of its own")
		}
		return nil, errors.Join(fmt.Errorf("cannot lock the spool: %w", err), file.Close())
	}
	return file, nil
}
