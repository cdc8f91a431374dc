package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

func holdsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "holds", Short: "List holds: what is paused or limited, by whom, and how many jobs wait", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				holds, err := o.Holds(ctx)
				if err != nil {
					return err
				}
				return show(c, holds, func(out io.Writer) { printHolds(out, holds) })
			})
		},
	}
}

func printHolds(out io.Writer, holds []ops.HoldStatus) {
	if len(holds) == 0 {
		fmt.Fprintln(out, "no holds")
		return
	}
	rows := make([][]string, len(holds))
	for n, h := range holds {
		scope, name := h.Scope()
		rows[n] = []string{scope, name, h.Source, allows(h.Hold), countText(h.Behind), formatTime(h.Since), formatTime(h.Until), h.Actor, orDash(h.Reason)}
	}
	table(out, []string{"ON", "NAME", "SOURCE", "ALLOWS", "WAITING", "SINCE", "UNTIL", "BY", "REASON"}, rows)
}

// allows describes how much a hold lets through.
func allows(h store.Hold) string {
	var parts []string
	if h.AtMost > 0 {
		parts = append(parts, fmt.Sprintf("%d at once", h.AtMost))
	}
	if h.Rate != nil {
		parts = append(parts, fmt.Sprintf("%.3g/s, %.3g available", h.Rate.PerSecond, h.Rate.Level))
	}
	if len(parts) == 0 {
		parts = append(parts, "nothing")
	}
	text := strings.Join(parts, ", ")
	if h.Retries {
		text += " (retries only)"
	}
	return text
}

// countText formats a count. Counting stops at ten thousand, and a negative count is unknown.
func countText(n int) string {
	switch {
	case n < 0:
		return "?"
	case n >= ops.MaxCounted:
		return "10,000+"
	}
	return fmt.Sprint(n)
}
