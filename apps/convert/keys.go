package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os/user"
	"text/tabwriter"
	"time"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
)

// keys implements `convert key ...`: API keys for programs.
func keys(ctx context.Context, set settings, args []string, out io.Writer, log *slog.Logger) (err error) {
	if len(args) == 0 {
		return fmt.Errorf("key: choose create, list or revoke: %w", errUsage)
	}
	if err := makeFolder(set.Store); err != nil {
		return err
	}
	a, err := open(ctx, set, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	switch verb, args := args[0], args[1:]; {
	case verb == "create":
		return a.createKey(ctx, args, out)
	case verb == "list" && len(args) == 0:
		return a.listKeys(ctx, out)
	case verb == "revoke" && len(args) == 1:
		if err := a.operator.RevokeKey(ctx, args[0], ops.Actor{Name: actor(), Reason: "convert key revoke"}); err != nil {
			return err
		}
		fmt.Fprintf(out, "Key %s is revoked.\n", args[0])
		return nil
	}
	return fmt.Errorf("key %s: %w", args[0], errUsage)
}

func (a *app) createKey(ctx context.Context, args []string, out io.Writer) error {
	var request apikey.Request
	var scope string
	flags := flag.NewFlagSet("key create", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the returned error contains it
	flags.StringVar(&request.Name, "name", "", "a name for people to recognise it by")
	flags.StringVar(&scope, "scope", string(apikey.Operator), "viewer, operator or admin")
	flags.StringVar(&request.Owner, "owner", "", "the owner whose files it gives access to; without it, the key has files of its own")
	flags.DurationVar(&request.ExpireIn, "for", 0, "how long it is valid; 0: for ever")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		return errors.Join(err, fmt.Errorf("key create --name NAME: %w", errUsage))
	}
	request.Scope = apikey.Scope(scope)
	made, text, err := a.operator.CreateKey(ctx, request, ops.Actor{Name: actor(), Reason: "convert key create"})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n", text)
	fmt.Fprintf(out, "This is key %s. It is shown only once: store it safely, and send it as  Authorization: Bearer ...\n", made.ID)
	return nil
}

func (a *app) listKeys(ctx context.Context, out io.Writer) error {
	all, err := a.operator.Keys(ctx)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tNAME\tSCOPE\tOWNER\tGOOD")
	for _, k := range all {
		good := "yes"
		if !k.Valid(time.Now()) {
			good = "no"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", k.ID, k.Name, k.Scope, k.Owner, good)
	}
	return table.Flush()
}

// actor returns the name of the user, for the audit log.
func actor() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "unknown user at the command line"
}
