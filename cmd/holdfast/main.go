// Command holdfast serves, inspects and operates background jobs. Each command is in a file of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/kind/execjob"
)

// Exit codes. Scripts may rely on them.
const (
	exitOK          = 0
	exitError       = 1 // an error, or the integrity check has findings
	exitUsage       = 2 // a flag or an argument is invalid
	exitNotFound    = 3
	exitConflict    = 4  // the present state does not allow it
	exitUnavailable = 75 // the store or the server is unavailable: the same command may succeed later
	exitForbidden   = 77 // the key is missing or invalid, or does not allow this
)

// exitCodes documents the exit codes in the help text.
const exitCodes = `Exit codes: 0 success, 1 error or finding, 2 invalid usage, 3 not found, 4 conflict, 75 the store or the server is unavailable, 77 the key is
missing, invalid or not allowed to do this.`

// errFindings ends a command with exitError and no further message: its findings are already printed.
var errFindings = errors.New("findings")

func main() {
	execjob.Main() // first: a child process that sets resource limits for a program execs that program here
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process immediately
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run executes one command line and returns its exit code. Data goes to out, messages and errors go to errOut.
func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	out, errOut = &plainWriter{to: out}, &plainWriter{to: errOut}
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	if err != nil && !errors.Is(err, errFindings) {
		hint := ""
		if errors.Is(err, api.ErrUnauthenticated) {
			hint = "; set HOLDFAST_KEY or HOLDFAST_KEY_FILE, or pass --key or --key-file"
		}
		message := err.Error()
		if usage := (*usageError)(nil); !errors.As(err, &usage) { // from a server or a store: always one line
			message = strings.ReplaceAll(message, "\n", "; ")
		}
		fmt.Fprintf(errOut, "holdfast: %s%s\n", message, hint)
	}
	return exitCode(err)
}

func exitCode(err error) int {
	var usage *usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage), errors.Is(err, holdfast.ErrInvalid), errors.Is(err, api.ErrTooLarge):
		return exitUsage
	case errors.Is(err, holdfast.ErrNotFound), errors.Is(err, holdfast.ErrPurged):
		return exitNotFound
	case errors.Is(err, holdfast.ErrConflict), errors.Is(err, api.ErrPrecondition), errors.Is(err, api.ErrReused), errors.Is(err, holdfast.ErrLeaseLost):
		return exitConflict
	case errors.Is(err, api.ErrUnauthenticated), errors.Is(err, api.ErrForbidden):
		return exitForbidden
	case errors.Is(err, holdfast.ErrUnavailable), errors.Is(err, holdfast.ErrThrottled):
		return exitUnavailable
	}
	return exitError
}
