package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast/ops"
)

func sharesCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "shares", Short: "Show or set the weights by which owners share workers", Args: cobra.NoArgs,
		Long: "Where jobs of several owners wait, each owner gets the same share of workers. An owner with weight 3 gets three times as much as one with weight 1.",
		RunE: func(c *cobra.Command, _ []string) error {
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				shares, err := o.Shares(ctx)
				if err != nil {
					return err
				}
				return show(c, shares, func(out io.Writer) { printShares(out, shares) })
			})
		},
	}
	c.AddCommand(setShareCommand())
	return c
}

func printShares(out io.Writer, shares []ops.Share) {
	if len(shares) == 0 {
		fmt.Fprintln(out, "every owner has weight 1")
		return
	}
	rows := make([][]string, len(shares))
	for n, share := range shares {
		rows[n] = []string{share.Owner, strconv.FormatFloat(share.Weight, 'g', -1, 64), formatTime(share.Since)}
	}
	table(out, []string{"OWNER", "WEIGHT", "SINCE"}, rows)
}

func setShareCommand() *cobra.Command {
	var by *ops.Actor
	c := &cobra.Command{
		Use: "set OWNER WEIGHT", Short: "Set the weight of an owner; the default is 1", Args: exactly("owner", "weight"),
		Example: "  holdfast shares set acme 3 --store jobs.db --reason 'a paying customer'",
		RunE: func(c *cobra.Command, args []string) error {
			weight, err := strconv.ParseFloat(args[1], 64)
			if err != nil {
				return usage(c, fmt.Errorf("weight %q is not a number", args[1]))
			}
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				if err := o.SetShare(ctx, ops.Share{Owner: args[0], Weight: weight}, *by); err != nil {
					return err
				}
				fmt.Fprintf(c.OutOrStdout(), "%s now has weight %v\n", printable(args[0]), weight)
				return nil
			})
		},
	}
	by = addByFlags(c)
	return c
}
