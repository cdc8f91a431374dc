package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

func holdsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "holds", Short: "List what is held or limited, by whom, and how many jobs wait behind it", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withDesk(c, func(ctx context.Context, o ops.Desk) error {
				holds, err := o.Holds(ctx)
				if err != nil {
					return err
				}
				return show(c, holds, func(out io.Writer) { printHolds(out, holds) })
			})
		},
	}
}

func printHolds(out io.Writer, holds []ops.Held) {
	if len(holds) == 0 {
		fmt.Fprintln(out, "nothing is held")
		return
	}
	rows := make([][]string, len(holds))
	for n, h := range holds {
		scope, name := h.On()
		rows[n] = []string{scope, name, h.Source, lets(h.Hold), atMost(h.Behind), moment(h.Since), moment(h.Until), h.Actor, orDash(h.Reason)}
	}
	table(out, []string{"ON", "NAME", "SOURCE", "LETS THROUGH", "BEHIND", "SINCE", "UNTIL", "BY", "WHY"}, rows)
}

// lets says what a hold lets through.
func lets(h holdfast.Hold) string {
	var parts []string
	if h.AtMost > 0 {
		parts = append(parts, fmt.Sprintf("%d at once", h.AtMost))
	}
	if h.Rate != nil {
		parts = append(parts, fmt.Sprintf("%.3g/s, %.3g at hand", h.Rate.PerSecond, h.Rate.Level))
	}
	if len(parts) == 0 {
		parts = append(parts, "nothing")
	}
	text := strings.Join(parts, ", ")
	if h.Retries {
		text += " (of retries)"
	}
	return text
}

// atMost prints a count that stops at ten thousand, or that nobody counted.
func atMost(n int) string {
	switch {
	case n < 0:
		return "?"
	case n >= ops.MostCounted:
		return "10,000+"
	}
	return fmt.Sprint(n)
}
