package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

func deadLettersCommand() *cobra.Command {
	var f store.Filter
	c := &cobra.Command{
		Use: "dead-letters", Short: "List dead letters: jobs that failed for good, with blame and remedy", Args: cobra.NoArgs,
		Example: `  holdfast dead-letters --code HTTP_5XX
  holdfast redrive start --code HTTP_5XX --reason "repaired"`,
		RunE: func(c *cobra.Command, _ []string) error {
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				deadLetters, cursor, err := o.DeadLetters(ctx, f)
				if err != nil {
					return err
				}
				answer := struct {
					Letters []ops.DeadLetter `json:"dead_letters"`
					Cursor  string           `json:"cursor,omitempty"`
				}{deadLetters, cursor}
				return show(c, answer, func(out io.Writer) { printDeadLetters(out, deadLetters, cursor) })
			})
		},
	}
	addFilterFlags(c, &f)
	c.Flags().IntVar(&f.Limit, "limit", 50, "number of dead letters, at most 200")
	c.Flags().StringVar(&f.Cursor, "cursor", "", "continue after the page that printed this cursor")
	return c
}

func printDeadLetters(out io.Writer, deadLetters []ops.DeadLetter, cursor string) {
	if len(deadLetters) == 0 {
		fmt.Fprintln(out, "no dead letters match")
		return
	}
	rows := make([][]string, len(deadLetters))
	for n, l := range deadLetters {
		rows[n] = []string{l.Job.ID.String(), l.Job.Kind, l.Job.Queue, orDash(l.Job.Owner), strconv.Itoa(l.Job.Failures), orDash(l.Code.Name), orDash(string(l.Code.Blame)), formatTime(l.Job.FinishedAt), short(orDash(l.Code.Remedy), 70)}
	}
	table(out, []string{"JOB", "KIND", "QUEUE", "OWNER", "FAILURES", "CODE", "BLAME", "FAILED", "REMEDY"}, rows)
	if cursor != "" {
		fmt.Fprintf(out, "more: --cursor %s\n", cursor)
	}
}
