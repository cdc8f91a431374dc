package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast/duty"
	"github.com/holdfastdev/holdfast/ops"
)

func dutiesCommand() *cobra.Command {
	c := listDutiesCommand("duties", "Show duties (periodic maintenance); pause, resume or run one")
	c.Example = `  holdfast duties --store jobs.db
  holdfast duties pause retention --store jobs.db --for 24h --reason "an audit is under way"
  holdfast duties run schedule --store jobs.db`
	var pause time.Duration
	pausing := namedActionCommand("pause", "Pause a duty in every worker, for a time or until it is resumed", "paused", func(o ops.Operator, ctx context.Context, name string, by ops.Actor) error {
		return o.PauseDuty(ctx, name, pause, by)
	})
	pausing.Flags().DurationVar(&pause, "for", 0, "duration of the pause; without it, until resumed")
	c.AddCommand(
		listDutiesCommand("list", "List duties with their last and next run"), pausing,
		namedActionCommand("resume", "Resume a paused duty", "resumed", ops.Operator.ResumeDuty),
		namedActionCommand("run", "Run a duty now, once in every worker", "requested: workers run it within seconds", ops.Operator.RunDuty),
	)
	return c
}

func listDutiesCommand(name, short string) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				list, err := o.Duties(ctx)
				if err != nil {
					return err
				}
				return show(c, list, func(out io.Writer) { printDuties(out, list) })
			})
		},
	}
}

func printDuties(out io.Writer, list []duty.Status) {
	if len(list) == 0 {
		fmt.Fprintln(out, "no worker has reported its duties: start one")
		return
	}
	rows := make([][]string, len(list))
	for n, d := range list {
		rows[n] = []string{d.Name, formatTime(d.Last), formatTime(d.Next), approximate(d.Lag), approximate(d.Took), strconv.Itoa(d.Workers), dutyState(d), dutyError(d)}
	}
	table(out, []string{"DUTY", "LAST", "NEXT", "LATE", "TOOK", "WORKERS", "STATE", "LAST ERROR"}, rows)
}

// approximate formats a duration to three significant digits.
func approximate(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return d.Round(max(d/1000, time.Microsecond)).String()
}

func dutyState(d duty.Status) string {
	switch {
	case d.Paused && d.Until.IsZero():
		return fmt.Sprintf("paused by %s: %s", d.Actor, orDash(d.Reason))
	case d.Paused:
		return fmt.Sprintf("paused by %s until %s: %s", d.Actor, formatTime(d.Until), orDash(d.Reason))
	case d.Workers == 0:
		return "no live worker"
	}
	return "running"
}

func dutyError(d duty.Status) string {
	if d.Error == "" {
		return "-"
	}
	return fmt.Sprintf("%s at %s", short(d.Error, 60), formatTime(d.ErrorAt))
}
