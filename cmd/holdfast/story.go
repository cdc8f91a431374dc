package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

// jobQueryCommand makes a command that reads something about one job and prints it.
func jobQueryCommand[T any](name, short string, ask func(ctx context.Context, o ops.Operator, id holdfast.ID) (T, error), printText func(out io.Writer, answer T)) *cobra.Command {
	return &cobra.Command{
		Use: name + " JOB", Short: short, Args: exactly("job"),
		RunE: func(c *cobra.Command, args []string) error {
			return withID(c, args[0], func(ctx context.Context, o ops.Operator) error {
				id, err := jobID(ctx, o, args[0])
				if err != nil {
					return err
				}
				answer, err := ask(ctx, o, id)
				if err != nil {
					return err
				}
				return show(c, answer, func(out io.Writer) { printText(out, answer) })
			})
		},
	}
}

func storyCommand() *cobra.Command {
	ask := func(ctx context.Context, o ops.Operator, id holdfast.ID) ([]ops.StoryLine, error) {
		return o.Story(ctx, id)
	}
	return jobQueryCommand("story", "Show the story of a job: everything that happened to it", ask, printStory)
}

func printStory(out io.Writer, lines []ops.StoryLine) {
	var rows [][]string
	for _, line := range lines {
		rows = append(rows, []string{formatTime(line.At), line.Name, line.Text})
		for _, change := range line.Changes {
			rows = append(rows, []string{"", "", "changed " + change.String()})
		}
		if len(line.Changes) > 0 {
			rows = append(rows, []string{"", "", "to restore: holdfast edit JOB --restore " + line.At.UTC().Format(time.RFC3339Nano)})
		}
		if line.Error != "" {
			rows = append(rows, []string{"", "", "error: " + line.Error})
		}
	}
	table(out, []string{"WHEN", "EVENT", "DETAIL"}, rows)
}

func explainCommand() *cobra.Command {
	ask := func(ctx context.Context, o ops.Operator, id holdfast.ID) (ops.Explanation, error) {
		return o.Explain(ctx, id)
	}
	return jobQueryCommand("explain", "Explain why a job is not running, and what to do", ask, func(out io.Writer, e ops.Explanation) {
		fmt.Fprintf(out, "%s %s in queue %s is %s\n", printable(e.Job.Kind), e.Job.ID, printable(e.Job.Queue), e.Job.State)
		for _, reason := range e.Reasons {
			fmt.Fprintf(out, "- %s\n", printable(reason.Text))
			if reason.Remedy != "" {
				fmt.Fprintf(out, "  %s\n", printable(reason.Remedy))
			}
		}
	})
}
