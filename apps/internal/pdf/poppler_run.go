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

// run starts one of poppler's programs with the file as its input, and has read take its output. The program and all it starts end with ctx, and
// when its output is not wanted any more.
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
	said := &capped{most: 16 << 10}
	cmd.Stderr = said
	together(cmd)
	output, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting one of poppler's programs: %w", err)
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
	return verdict(err, said.buf.Bytes())
}

// verdict says what it means how a program ended. Poppler says on the way when it cannot open a PDF for want of a password, and leaves with other
// numbers than 0 for all else it dislikes. One that was ended by a limit had too much to do.
func verdict(err error, said []byte) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &exit):
		return err
	case bytes.Contains(said, []byte("password")):
		return ErrLocked
	case exit.ExitCode() < 0:
		return ErrTooMuch
	}
	return fmt.Errorf("%w: poppler ended with %d", ErrDamaged, exit.ExitCode())
}

// capped keeps the beginning of what is written.
type capped struct {
	buf  bytes.Buffer
	most int
}

func (c *capped) Write(p []byte) (int, error) {
	c.buf.Write(p[:min(len(p), c.most-c.buf.Len())])
	return len(p), nil
}
