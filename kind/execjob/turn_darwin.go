package execjob

import (
	"os"
	"syscall"
)

// self is this program.
func self() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

// turn replaces this process by a program.
func turn(path string, args []string, limit func() error) error {
	if err := limit(); err != nil {
		return err
	}
	return syscall.Exec(path, args, os.Environ())
}
