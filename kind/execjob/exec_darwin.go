package execjob

import (
	"os"
	"syscall"
)

// selfPath returns the path of this program.
func selfPath() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

// replaceProcess sets the limits and executes the program in this process.
func replaceProcess(path string, args []string, limit func() error) error {
	if err := limit(); err != nil {
		return err
	}
	return syscall.Exec(path, args, os.Environ())
}
