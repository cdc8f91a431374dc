package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
)

func keysCommand() *cobra.Command {
	c := listKeysCommand("keys", "List, create and revoke API keys")
	c.Example = `  holdfast keys create --name ada --scope admin
  holdfast keys create --name shop --scope operator --owner acme --expire-in 720h
  holdfast keys revoke 4f2a91c07be3`
	c.AddCommand(listKeysCommand("list", "List keys, newest first"), createKeyCommand(), revokeKeyCommand())
	return c
}

func listKeysCommand(name, short string) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				keys, err := o.Keys(ctx)
				if err != nil {
					return err
				}
				return show(c, keys, func(out io.Writer) { printKeys(out, keys) })
			})
		},
	}
}

func printKeys(out io.Writer, keys []apikey.Key) {
	if len(keys) == 0 {
		fmt.Fprintln(out, "no keys: see 'holdfast keys create --help'")
		return
	}
	rows := make([][]string, len(keys))
	for n, k := range keys {
		rows[n] = []string{k.ID, k.Name, string(k.Scope), orDash(keyLimits(k)), keyState(k), formatTime(k.CreatedAt), formatTime(k.ExpireAt), formatTime(k.UsedAt)}
	}
	table(out, []string{"KEY", "NAME", "SCOPE", "LIMITED TO", "STATE", "CREATED", "EXPIRES", "USED"}, rows)
}

// keyLimits lists the owner, queues and kinds that a key is limited to.
func keyLimits(k apikey.Key) string {
	var parts []string
	if k.Owner != "" {
		parts = append(parts, "owner "+printable(k.Owner))
	}
	if len(k.Queues) > 0 {
		parts = append(parts, "queues "+strings.Join(k.Queues, " "))
	}
	if len(k.Kinds) > 0 {
		parts = append(parts, "kinds "+strings.Join(k.Kinds, " "))
	}
	return strings.Join(parts, ", ")
}

func keyState(k apikey.Key) string {
	switch {
	case !k.RevokedAt.IsZero():
		return "revoked"
	case !k.Valid(time.Now()):
		return "expired"
	}
	return "valid"
}

func createKeyCommand() *cobra.Command {
	var request apikey.Request
	var scope string
	var by *ops.Actor
	c := &cobra.Command{
		Use: "create", Short: "Create a key and print it once", Args: cobra.NoArgs,
		Long: `Creates a key and prints it. The key cannot be printed again: the store keeps only a hash of it. Scopes: viewer (read), worker (enqueue, claim and
settle), operator (read, enqueue and intervene), admin (everything). A viewer or operator key can be limited to an owner: it sees and changes only
that owner's jobs. A worker key can be limited to queues and kinds: it enqueues, claims and sees only jobs of these.`,
		RunE: func(c *cobra.Command, _ []string) error {
			request.Scope = apikey.Scope(scope)
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				known, err := o.Keys(ctx)
				if err != nil {
					return err
				}
				k, text, err := o.CreateKey(ctx, request, *by)
				if err != nil {
					return err
				}
				answer := struct {
					Key  apikey.Key `json:"key"`
					Text string     `json:"text"`
				}{k, text}
				return show(c, answer, func(out io.Writer) {
					fmt.Fprintln(out, text)
					fmt.Fprintf(c.ErrOrStderr(), "created key %s for %s, scope %s; it is not shown again\n", k.ID, printable(k.Name), k.Scope)
					if len(known) == 0 {
						fmt.Fprintln(c.ErrOrStderr(), "this is the first key: servers of this store require a key from every caller from now on (except with --auth off)")
					}
				})
			})
		},
	}
	c.Flags().StringVar(&request.Name, "name", "", "name of its holder: the actor in the audit log")
	c.Flags().StringVar(&scope, "scope", "", "viewer, worker, operator or admin")
	c.Flags().StringVar(&request.Owner, "owner", "", "limit it to jobs of this owner (viewer, operator)")
	c.Flags().StringSliceVar(&request.Queues, "queues", nil, "limit it to these queues (worker)")
	c.Flags().StringSliceVar(&request.Kinds, "kinds", nil, "limit it to these kinds (worker)")
	c.Flags().DurationVar(&request.ExpireIn, "expire-in", 0, "how long it is valid; without it, forever")
	by = addByFlags(c)
	return c
}

func revokeKeyCommand() *cobra.Command {
	var by *ops.Actor
	c := &cobra.Command{
		Use: "revoke KEY", Short: "Revoke a key; servers refuse it within a second", Args: exactly("key"),
		RunE: func(c *cobra.Command, args []string) error {
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				return printAnswer(c)("revoked", o.RevokeKey(ctx, args[0], *by))
			})
		},
	}
	by = addByFlags(c)
	return c
}
