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

// trouble says what is wrong with a folder, and what to do. Paths are left out: such an error may come before people.
func trouble(doing string, err error) error {
	switch err = bare(err); {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case full(err):
		return fmt.Errorf("%s: %w: free some space on its disk, or raise the quota (%w)", doing, ErrFull, err)
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%s: the folder for files can only be read; mount it so that it can be written (%w)", doing, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: give the user that runs this the right to write in the folder for files (%w)", doing, err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: the folder for files, or a part of it, is gone; mount it, or make it again (%w)", doing, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// bare is what the system said, without the path it said it about.
func bare(err error) error {
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

func full(err error) bool {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return true
	}
	const diskFull, handleDiskFull = syscall.Errno(112), syscall.Errno(39) // on Windows
	return runtime.GOOS == "windows" && (errors.Is(err, diskFull) || errors.Is(err, handleDiskFull))
}

// Buffers are shared, so that hundreds of uploads at once cost little memory.
var buffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// pour writes all that from holds. What from fails with is returned as it is; what to fails with is a trouble.
func pour(ctx context.Context, to io.Writer, from io.Reader) (size int64, err error) {
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
				return size, trouble("a file could not be written", err)
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
