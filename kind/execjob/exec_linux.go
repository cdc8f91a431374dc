package execjob

import (
	"os"
	"syscall"
	"unsafe"
)

// selfPath returns the path of this program. It is valid even if the file was replaced since the start.
func selfPath() string { return "/proc/self/exe" }

// replaceProcess sets the limits and executes the program in this process. Everything is allocated before the limits are set, because there may be no memory
// afterwards.
func replaceProcess(path string, args []string, limit func() error) error {
	name, err := syscall.BytePtrFromString(path)
	if err != nil {
		return err
	}
	argv, err := syscall.SlicePtrFromStrings(args)
	if err != nil {
		return err
	}
	env, err := syscall.SlicePtrFromStrings(os.Environ())
	if err != nil {
		return err
	}
	if err := limit(); err != nil {
		return err
	}
	_, _, failed := syscall.RawSyscall(syscall.SYS_EXECVE, uintptr(unsafe.Pointer(name)), uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&env[0])))
	return failed
}
