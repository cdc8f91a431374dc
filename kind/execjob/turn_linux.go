package execjob

import (
	"os"
	"syscall"
	"unsafe"
)

// self is this program, also when its file has been replaced since it was started.
func self() string { return "/proc/self/exe" }

// turn replaces this process by a program. Everything is laid out before the limits are set, because there may be no memory afterwards.
func turn(path string, args []string, limit func() error) error {
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
