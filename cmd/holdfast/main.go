// Command holdfast looks after background jobs: it shows them, explains them, intervenes, and audits the promises the
// library makes. One file a verb.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/holdfastdev/holdfast"
)

// Exit codes, the only such table. A script can rely on them.
const (
	exitOK          = 0
	exitError       = 1 // something went wrong, or the audit found something
	exitUsage       = 2 // the command line or an argument makes no sense
	exitNotFound    = 3
	exitConflict    = 4  // what the store holds stands against it
	exitUnavailable = 75 // the store cannot be used now: the same command may work later
)

// errFound ends a command whose findings are already printed.
var errFound = errors.New("found something")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the whole program but for the process around it. Data goes to out, talk goes to talk.
func run(ctx context.Context, args []string, out, talk io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(talk)
	err := root.ExecuteContext(ctx)
	if err != nil && !errors.Is(err, errFound) {
		fmt.Fprintln(talk, "holdfast:", err)
	}
	return exitCode(err)
}

func exitCode(err error) int {
	var usage *usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage), errors.Is(err, holdfast.ErrInvalid):
		return exitUsage
	case errors.Is(err, holdfast.ErrNotFound), errors.Is(err, holdfast.ErrPurged):
		return exitNotFound
	case errors.Is(err, holdfast.ErrConflict):
		return exitConflict
	case errors.Is(err, holdfast.ErrUnavailable):
		return exitUnavailable
	}
	return exitError
}
