package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

// aboutJob makes a verb that asks about one job and prints the answer.
func aboutJob[T any](name, short string, ask func(ctx context.Context, o ops.Desk, id holdfast.ID) (T, error), people func(out io.Writer, answer T)) *cobra.Command {
	return &cobra.Command{
		Use: name + " JOB", Short: short, Args: exactly("job"),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := holdfast.ParseID(args[0])
			if err != nil {
				return err
			}
			return withDesk(c, func(ctx context.Context, o ops.Desk) error {
				answer, err := ask(ctx, o, id)
				if err != nil {
					return err
				}
				return show(c, answer, func(out io.Writer) { people(out, answer) })
			})
		},
	}
}

func storyCommand() *cobra.Command {
	ask := func(ctx context.Context, o ops.Desk, id holdfast.ID) ([]ops.Line, error) { return o.Story(ctx, id) }
	return aboutJob("story", "Tell how a job came to stand where it stands", ask, printStory)
}

func printStory(out io.Writer, lines []ops.Line) {
	rows := make([][]string, len(lines))
	for n, line := range lines {
		rows[n] = []string{moment(line.At), line.Name, line.Text}
	}
	table(out, []string{"WHEN", "WHAT", "HOW"}, rows)
}

func explainCommand() *cobra.Command {
	ask := func(ctx context.Context, o ops.Desk, id holdfast.ID) (ops.Explanation, error) {
		return o.Explain(ctx, id)
	}
	return aboutJob("explain", "Say why a job is not running, and what can be done", ask, func(out io.Writer, e ops.Explanation) {
		fmt.Fprintf(out, "%s %s in queue %s is %s\n", printable(e.Job.Kind), e.Job.ID, printable(e.Job.Queue), e.Job.State)
		for _, reason := range e.Reasons {
			fmt.Fprintf(out, "- %s\n", printable(reason.Text))
			if reason.Remedy != "" {
				fmt.Fprintf(out, "  %s\n", printable(reason.Remedy))
			}
		}
	})
}
