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
		Use: "holds", Short: "List holds: what is paused or limited, by whom, and how many jobs wait; and lines of order keys that dead letters hold", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				holds, err := o.Holds(ctx)
				if err != nil {
					return err
				}
				lines, more, err := o.HeldLines(ctx)
				if err != nil {
					return err
				}
				all := struct {
					Holds     []ops.HoldStatus `json:"holds"`
					Lines     []store.HeldLine `json:"lines"`
					MoreLines bool             `json:"more_lines"`
				}{holds, lines, more}
				return show(c, all, func(out io.Writer) {
					printHolds(out, holds)
					printHeldLines(out, lines, more)
				})
			})
		},
	}
}

// printHeldLines prints the lines that dead letters hold, and how each is released.
func printHeldLines(out io.Writer, lines []store.HeldLine, more bool) {
	if len(lines) == 0 {
		return
	}
	rows := make([][]string, len(lines))
	for n, l := range lines {
		waiting := fmt.Sprint(l.Waiting)
		if l.Waiting >= 1000 {
			waiting = "1,000+"
		}
		rows[n] = []string{l.Order, orDash(l.Owner), l.Job.String(), l.Kind, orDash(l.Code), waiting, formatTime(l.Since)}
	}
	fmt.Fprintln(out, "\nlines held by a dead letter:")
	table(out, []string{"ORDER KEY", "OWNER", "HELD BY", "KIND", "CODE", "WAITING", "SINCE"}, rows)
	if more {
		fmt.Fprintf(out, "these are the first %d lines; there are more\n", len(lines))
	}
	fmt.Fprintln(out, "a line continues when its dead letter completes after: holdfast retry JOB --reason '...'\nor at once after: holdfast discard JOB --reason '...'")
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
