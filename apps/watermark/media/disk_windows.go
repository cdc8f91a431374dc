package media

import "golang.org/x/sys/windows"

// freeSpace returns the bytes that are free where a folder is.
func freeSpace(folder string) (free uint64, ok bool) {
	path, err := windows.UTF16PtrFromString(folder)
	if err != nil {
		return 0, false
	}
	err = windows.GetDiskFreeSpaceEx(path, &free, nil, nil)
	return free, err == nil
}
