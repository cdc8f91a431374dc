package chromium

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
)

// pipes connects a program that is not started yet. On Windows it finds the pipes by their handles, which are the same numbers in both processes. theirs are closed after
// the start.
func pipes(cmd *exec.Cmd) (theirs []*os.File, from io.ReadCloser, to io.WriteCloser, err error) {
	read, write, from, to, err := makePipes()
	if err != nil {
		return nil, nil, nil, err
	}
	theirs = []*os.File{read, write}
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	for _, file := range theirs {
		handle := syscall.Handle(file.Fd())
		if err := syscall.SetHandleInformation(handle, syscall.HANDLE_FLAG_INHERIT, syscall.HANDLE_FLAG_INHERIT); err != nil {
			return nil, nil, nil, errNoPipes(err)
		}
		cmd.SysProcAttr.AdditionalInheritedHandles = append(cmd.SysProcAttr.AdditionalInheritedHandles, handle)
	}
	cmd.Args = slices.Insert(cmd.Args, 1, fmt.Sprintf("--remote-debugging-io-pipes=%d,%d", read.Fd(), write.Fd()))
	return theirs, from, to, nil
}
