package keyring

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/user"
	"text/tabwriter"
	"time"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
)

// Usage is the help of Command, with the name of the program.
func Usage(program string) string {
	return fmt.Sprintf("  %[1]s key create --name N  create an API key: --scope viewer|operator|admin, --owner OWNER, --for 720h\n"+
		"  %[1]s key list             list the API keys\n"+
		"  %[1]s key revoke ID        revoke an API key\n", program)
}

// ErrUsage marks errors in the arguments of Command.
var ErrUsage = errors.New("choose create, list or revoke")

// Command runs the command line of API keys: create, list or revoke. reason is recorded in the audit log.
func Command(ctx context.Context, by ops.Keys, args []string, out io.Writer, reason string) error {
	if len(args) == 0 {
		return fmt.Errorf("key: %w", ErrUsage)
	}
	who := ops.Actor{Name: Actor(), Reason: reason}
	switch verb, args := args[0], args[1:]; {
	case verb == "create":
		return create(ctx, by, args, out, who)
	case verb == "list" && len(args) == 0:
		return list(ctx, by, out)
	case verb == "revoke" && len(args) == 1:
		if err := by.RevokeKey(ctx, args[0], who); err != nil {
			return err
		}
		fmt.Fprintf(out, "Key %s is revoked.\n", args[0])
		return nil
	}
	return fmt.Errorf("key %s: %w", args[0], ErrUsage)
}

func create(ctx context.Context, by ops.Keys, args []string, out io.Writer, who ops.Actor) error {
	var request apikey.Request
	var scope string
	flags := flag.NewFlagSet("key create", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the returned error contains it
	flags.StringVar(&request.Name, "name", "", "a name for people to recognise it by")
	flags.StringVar(&scope, "scope", string(apikey.Operator), "viewer, operator or admin")
	flags.StringVar(&request.Owner, "owner", "", "the owner to whose jobs it gives access; without it, the key is an owner of its own")
	flags.DurationVar(&request.ExpireIn, "for", 0, "how long it is valid; 0: for ever")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		return errors.Join(err, fmt.Errorf("key create --name NAME: %w", ErrUsage))
	}
	request.Scope = apikey.Scope(scope)
	made, text, err := by.CreateKey(ctx, request, who)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n", text)
	fmt.Fprintf(out, "This is key %s. It is shown only once: store it safely, and send it as  Authorization: Bearer ...\n", made.ID)
	return nil
}

func list(ctx context.Context, by ops.Keys, out io.Writer) error {
	all, err := by.Keys(ctx)
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

// Actor returns the name of the user, for the audit log.
func Actor() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "unknown user at the command line"
}
