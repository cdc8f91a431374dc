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
	c := listKeysCommand("keys", "Show, make and revoke API keys")
	c.Example = `  holdfast keys create --name ada --scope admin
  holdfast keys create --name shop --scope operator --owner acme --expire-in 720h
  holdfast keys revoke 4f2a91c07be3`
	c.AddCommand(listKeysCommand("list", "List keys, the newest first"), makeKeyCommand(), revokeKeyCommand())
	return c
}

func listKeysCommand(name, short string) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withDesk(c, func(ctx context.Context, o ops.Desk) error {
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
		fmt.Fprintln(out, "no key was ever made: see 'holdfast keys create --help'")
		return
	}
	rows := make([][]string, len(keys))
	for n, k := range keys {
		rows[n] = []string{k.ID, k.Name, string(k.Scope), orDash(boundTo(k)), keyState(k), moment(k.CreatedAt), moment(k.ExpireAt), moment(k.UsedAt)}
	}
	table(out, []string{"KEY", "NAME", "SCOPE", "BOUND TO", "STATE", "MADE", "EXPIRES", "USED"}, rows)
}

// boundTo says what a key is bound to.
func boundTo(k apikey.Key) string {
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
	case !k.Good(time.Now()):
		return "expired"
	}
	return "good"
}

func makeKeyCommand() *cobra.Command {
	var order apikey.Order
	var scope string
	var by *ops.By
	c := &cobra.Command{
		Use: "create", Short: "Make a key and show it, this once", Args: cobra.NoArgs,
		Long: `Makes a key. It is printed this once and kept nowhere: of its secret the store keeps a hash. Scopes: viewer (look), worker (enqueue, claim and
settle), operator (look, enqueue and intervene), admin (everything). A key of a viewer or operator may be bound to an owner: it sees and touches nobody
else's jobs. A worker's key may be bound to queues and kinds: it enqueues, claims and sees nothing else.`,
		RunE: func(c *cobra.Command, _ []string) error {
			order.Scope = apikey.Scope(scope)
			return withDesk(c, func(ctx context.Context, o ops.Desk) error {
				known, err := o.Keys(ctx)
				if err != nil {
					return err
				}
				k, text, err := o.MakeKey(ctx, order, *by)
				if err != nil {
					return err
				}
				answer := struct {
					Key  apikey.Key `json:"key"`
					Text string     `json:"text"`
				}{k, text}
				return show(c, answer, func(out io.Writer) {
					fmt.Fprintln(out, text)
					fmt.Fprintf(c.ErrOrStderr(), "made key %s for %s, scope %s; it is shown this once\n", k.ID, printable(k.Name), k.Scope)
					if len(known) == 0 {
						fmt.Fprintln(c.ErrOrStderr(), "it is the first key: servers of this store ask every caller for a key from now on (except with --auth off)")
					}
				})
			})
		},
	}
	c.Flags().StringVar(&order.Name, "name", "", "whose it is: the actor of what is done with it")
	c.Flags().StringVar(&scope, "scope", "", "viewer, worker, operator or admin")
	c.Flags().StringVar(&order.Owner, "owner", "", "bind it to this owner")
	c.Flags().StringSliceVar(&order.Queues, "queues", nil, "bind a worker's key to these queues")
	c.Flags().StringSliceVar(&order.Kinds, "kinds", nil, "bind a worker's key to these kinds")
	c.Flags().DurationVar(&order.ExpireIn, "expire-in", 0, "good for this long; for ever when left out")
	by = byWhom(c)
	return c
}

func revokeKeyCommand() *cobra.Command {
	var by *ops.By
	c := &cobra.Command{
		Use: "revoke KEY", Short: "End a key; servers refuse it within a second", Args: exactly("key"),
		RunE: func(c *cobra.Command, args []string) error {
			return withDesk(c, func(ctx context.Context, o ops.Desk) error {
				return answered(c)("revoked", o.RevokeKey(ctx, args[0], *by))
			})
		},
	}
	by = byWhom(c)
	return c
}
