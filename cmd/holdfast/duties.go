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
	c := listDutiesCommand("duties", "Show what workers do on a beat; pause, resume or run it")
	c.Example = `  holdfast duties --store jobs.db
  holdfast duties pause retention --store jobs.db --for 24h --reason "an audit is under way"
  holdfast duties run schedule --store jobs.db`
	var pause time.Duration
	pausing := onNamed("pause", "Have every worker leave a duty alone, for a while or until it is resumed", "paused", func(o ops.Desk, ctx context.Context, name string, by ops.By) error {
		return o.PauseDuty(ctx, name, pause, by)
	})
	pausing.Flags().DurationVar(&pause, "for", 0, "how long; until resumed when left out")
	c.AddCommand(
		listDutiesCommand("list", "List duties with their last and next run"), pausing,
		onNamed("resume", "End a pause", "resumed", ops.Desk.ResumeDuty),
		onNamed("run", "Have every worker perform a duty once, out of turn", "asked for: workers perform it within seconds", ops.Desk.RunDuty),
	)
	return c
}

func listDutiesCommand(name, short string) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withDesk(c, func(ctx context.Context, o ops.Desk) error {
				list, err := o.Duties(ctx)
				if err != nil {
					return err
				}
				return show(c, list, func(out io.Writer) { printDuties(out, list) })
			})
		},
	}
}

func printDuties(out io.Writer, list []duty.Standing) {
	if len(list) == 0 {
		fmt.Fprintln(out, "no worker has reported: start one")
		return
	}
	rows := make([][]string, len(list))
	for n, d := range list {
		rows[n] = []string{d.Name, moment(d.Last), moment(d.Next), about(d.Lag), about(d.Took), strconv.Itoa(d.Workers), halted(d), troubled(d)}
	}
	table(out, []string{"DUTY", "LAST", "NEXT", "LATE", "TOOK", "WORKERS", "STATE", "LAST ERROR"}, rows)
}

// about prints a duration that need not be exact.
func about(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return d.Round(max(d/1000, time.Microsecond)).String()
}

func halted(d duty.Standing) string {
	switch {
	case d.Paused && d.Until.IsZero():
		return fmt.Sprintf("paused by %s: %s", d.Actor, orDash(d.Reason))
	case d.Paused:
		return fmt.Sprintf("paused by %s until %s: %s", d.Actor, moment(d.Until), orDash(d.Reason))
	case d.Workers == 0:
		return "nobody performs it"
	}
	return "running"
}

func troubled(d duty.Standing) string {
	if d.Error == "" {
		return "-"
	}
	return fmt.Sprintf("%s at %s", short(d.Error, 60), moment(d.ErrorAt))
}
