package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"sync"
	"syscall"
)

// folderError describes an error of a folder and what to do. It contains no paths, because users may see it.
func folderError(doing string, err error) error {
	switch err = withoutPath(err); {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case isDiskFull(err):
		return fmt.Errorf("%s: %w: free space on the disk, or raise the quota (%w)", doing, ErrFull, err)
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%s: the folder for files is read-only; mount it writable (%w)", doing, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: the user of this process needs write permission in the folder for files (%w)", doing, err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: the folder for files, or a part of it, is missing; mount it, or create it again (%w)", doing, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// withoutPath returns the system's error without the path.
func withoutPath(err error) error {
	for {
		var next error
		switch e := err.(type) {
		case *fs.PathError:
			next = e.Err
		case *os.LinkError:
			next = e.Err
		case *os.SyscallError:
			next = e.Err
		default:
			return err
		}
		err = next
	}
}

func isDiskFull(err error) bool {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return true
	}
	const diskFull, handleDiskFull = syscall.Errno(112), syscall.Errno(39) // on Windows
	return runtime.GOOS == "windows" && (errors.Is(err, diskFull) || errors.Is(err, handleDiskFull))
}

// buffers are reused, so that hundreds of concurrent uploads need little memory.
var buffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// copyAll copies everything from a reader to a writer. An error of the reader is returned unchanged, an error of the writer as a folderError.
func copyAll(ctx context.Context, to io.Writer, from io.Reader) (size int64, err error) {
	buffer := buffers.Get().(*[64 << 10]byte)
	defer buffers.Put(buffer)
	for empty := 0; ; {
		if err := ctx.Err(); err != nil {
			return size, err
		}
		n, failed := from.Read(buffer[:])
		if n > 0 {
			empty = 0
			wrote, err := to.Write(buffer[:n])
			size += int64(wrote)
			if err != nil {
				return size, folderError("cannot write a file", err)
			}
		} else if empty++; failed == nil && empty == 100 {
			return size, io.ErrNoProgress
		}
		if failed == io.EOF {
			return size, nil
		}
		if failed != nil {
			return size, failed
		}
	}
}
