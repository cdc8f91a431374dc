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
	"strings"
	"syscall"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/api"
	"github.com/holdfastdev/holdfast/kind/execjob"
)

// Exit codes, the only such table. A script can rely on them.
const (
	exitOK          = 0
	exitError       = 1 // something went wrong, or the audit found something
	exitUsage       = 2 // the command line or an argument makes no sense
	exitNotFound    = 3
	exitConflict    = 4  // what the store holds stands against it
	exitUnavailable = 75 // the store or the server cannot be used now: the same command may work later
	exitForbidden   = 77 // the key is missing, not good, or may not do this
)

// exitCodes is the table as people read it.
const exitCodes = `Exit codes: 0 fine, 1 an error or a finding, 2 usage, 3 not found, 4 conflict, 75 the store or the server cannot be used now, 77 the key
is missing or may not do this.`

// errFound ends a command whose findings are already printed.
var errFound = errors.New("found something")

func main() {
	execjob.Main() // first: a process that sets limits on a program becomes it here
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the whole program but for the process around it. Data goes to out, talk goes to talk.
func run(ctx context.Context, args []string, out, talk io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	out, talk = &plainWriter{to: out}, &plainWriter{to: talk}
	root.SetOut(out)
	root.SetErr(talk)
	err := root.ExecuteContext(ctx)
	if err != nil && !errors.Is(err, errFound) {
		hint := ""
		if errors.Is(err, api.ErrUnauthenticated) {
			hint = "; here the key is given by HOLDFAST_KEY, HOLDFAST_KEY_FILE, --key or --key-file"
		}
		said := err.Error()
		if usage := (*usageError)(nil); !errors.As(err, &usage) { // a server or a store said it: it is one line
			said = strings.ReplaceAll(said, "\n", "; ")
		}
		fmt.Fprintf(talk, "holdfast: %s%s\n", said, hint)
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
