// Package command has what the main functions of applications share: signals, exit codes and the log.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// Main runs a program with the arguments and the environment of this process, and ends the process with the exit code that it returns. Its context ends at the first
// SIGTERM or Ctrl-C; a second one ends the process at once.
func Main(run func(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer) int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// ExitCode prints the error with which a program ends, and returns its exit code: 0 for none, 2 for one that wraps one of usage, 1 for any other.
func ExitCode(program string, err error, stderr io.Writer, usage ...error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "%s: %v\n", program, err)
	for _, wrong := range usage {
		if errors.Is(err, wrong) {
			return 2
		}
	}
	return 1
}

// NewLog returns a log: text on a terminal, JSON otherwise.
func NewLog(to io.Writer) *slog.Logger {
	if file, ok := to.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return slog.New(slog.NewTextHandler(to, nil))
		}
	}
	return slog.New(slog.NewJSONHandler(to, nil))
}
