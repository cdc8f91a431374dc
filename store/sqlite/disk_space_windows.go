package sqlite

import (
	"syscall"
	"unsafe"
)

var diskFree = syscall.NewLazyDLL("kernel32.dll").NewProc("GetDiskFreeSpaceExW")

// freeBytes returns how much this user may still write on the volume of a directory.
func freeBytes(dir string) (bytes int64, known bool) {
	path, err := syscall.UTF16PtrFromString(dir)
	if err != nil || diskFree.Find() != nil {
		return 0, false
	}
	var free uint64
	done, _, _ := diskFree.Call(uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&free)), 0, 0)
	return int64(free), done != 0
}
