package pdf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// run starts one of poppler's programs with the file as its input and passes its output to read. The program and everything it starts end with ctx, and when read returns an
// error.
func run(ctx context.Context, file *os.File, program string, arguments []string, read func(io.Reader) error) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	own, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(own, program, arguments...)
	cmd.Stdin = file
	cmd.Env = []string{"LC_ALL=C.UTF-8", "TZ=UTC", "HOME=" + os.DevNull, "PATH=" + os.Getenv("PATH")}
	cmd.WaitDelay = 5 * time.Second
	stderr := &cappedBuffer{max: 16 << 10}
	cmd.Stderr = stderr
	setProcessGroup(cmd)
	output, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting a program of poppler: %w", err)
	}
	readErr := read(output)
	if readErr != nil {
		cancel()
	} else {
		_, _ = io.Copy(io.Discard, output)
	}
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case readErr != nil:
		return readErr
	}
	return exitError(err, stderr.buf.Bytes())
}

// exitError translates the end of a program. Poppler prints a message about a missing password, and exits with a code above 0 for any other problem. A program that was
// killed by a limit had too much to do.
func exitError(err error, stderr []byte) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &exit):
		return err
	case bytes.Contains(stderr, []byte("password")):
		return ErrLocked
	case exit.ExitCode() < 0:
		return ErrTooMuch
	}
	return fmt.Errorf("%w: poppler exited with %d", ErrDamaged, exit.ExitCode())
}

// A cappedBuffer keeps the beginning of what is written.
type cappedBuffer struct {
	buf bytes.Buffer
	max int
}

func (c *cappedBuffer) Write(p []byte) (int, error) {
	c.buf.Write(p[:min(len(p), c.max-c.buf.Len())])
	return len(p), nil
}
