package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/schedule"
)

func schedulesCommand() *cobra.Command {
	c := listSchedulesCommand("schedules", "List, add, pause and remove schedules")
	c.Example = `  holdfast schedules add report --store jobs.db --cron '0 9 * * MON-FRI' --zone Europe/Berlin --kind report
  holdfast schedules pause report --store jobs.db --for 48h --reason holidays
  holdfast schedules next report --store jobs.db`
	var pause time.Duration
	pausing := namedActionCommand("pause", "Pause a schedule, for a time or until it is resumed", "paused", func(o ops.Operator, ctx context.Context, name string, by ops.Actor) error {
		return o.PauseSchedule(ctx, name, pause, by)
	})
	pausing.Flags().DurationVar(&pause, "for", 0, "duration of the pause; without it, until resumed")
	c.AddCommand(
		listSchedulesCommand("list", "List schedules by name"), addScheduleCommand(), nextRunsCommand(), pausing,
		namedActionCommand("remove", "Remove a schedule; jobs that it has enqueued stay", "removed", ops.Operator.RemoveSchedule),
		namedActionCommand("resume", "Resume a paused schedule; slots during the pause are not made up for", "resumed", ops.Operator.ResumeSchedule),
		namedActionCommand("run", "Enqueue a job of a schedule now", "requested: a worker enqueues the job within seconds", ops.Operator.RunSchedule),
	)
	return c
}

func listSchedulesCommand(name, short string) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				list, err := o.Schedules(ctx, 1)
				if err != nil {
					return err
				}
				return show(c, list, func(out io.Writer) { printSchedules(out, list) })
			})
		},
	}
}

func printSchedules(out io.Writer, list []ops.ScheduleStatus) {
	if len(list) == 0 {
		fmt.Fprintln(out, "no schedules: see 'holdfast schedules add --help'")
		return
	}
	rows := make([][]string, len(list))
	for n, s := range list {
		next := "-"
		if len(s.Next) > 0 {
			next = formatTime(s.Next[0])
		}
		rows[n] = []string{s.Name, s.Words, s.Draft.Kind, next, formatTime(s.Last), strconv.Itoa(s.Runs), strconv.Itoa(s.Skipped), string(s.Missed), scheduleState(s.Schedule)}
	}
	table(out, []string{"SCHEDULE", "WHEN", "KIND", "NEXT", "LAST", "RUNS", "SKIPPED", "MISSED", "STATE"}, rows)
}

// scheduleState is "running", or by whom, until when and why a schedule is paused.
func scheduleState(s schedule.Schedule) string {
	if !s.Paused {
		return "running"
	}
	text := "paused by " + s.Actor
	if !s.PausedUntil.IsZero() {
		text += " until " + formatTime(s.PausedUntil)
	}
	if s.Reason != "" {
		text += ": " + s.Reason
	}
	return text
}

func addScheduleCommand() *cobra.Command {
	var s schedule.Schedule
	var args, missed string
	var by *ops.Actor
	c := &cobra.Command{
		Use: "add NAME", Short: "Add a schedule, or replace the one with this name", Args: exactly("name"),
		Long: `Enqueues one job at every slot, whatever the number of workers. Slots at which no worker was running are skipped, made up for by one job, or each
made up for (--missed skip, one or all). A slot in the hour that daylight saving time skips runs once, after the gap; a slot in the repeated hour runs once.`,
		RunE: func(c *cobra.Command, names []string) error {
			s.Name, s.Missed = names[0], schedule.Missed(missed)
			if args != "" {
				s.Draft.Args = json.RawMessage(args)
			}
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				kept, err := o.SetSchedule(ctx, s, *by)
				if err != nil {
					return err
				}
				return show(c, kept, func(out io.Writer) {
					fmt.Fprintf(out, "%s: %s\n", printable(kept.Name), printable(kept.Words))
					printRuns(out, kept)
				})
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&s.Cron, "cron", "", "cron expression: minute, hour, day, month, weekday; or @daily etc.")
	flags.DurationVar(&s.Every, "every", 0, "or an interval, such as 90s, 5m or 24h")
	flags.StringVar(&s.Zone, "zone", "", "time zone of the cron expression, such as Europe/Berlin; UTC by default")
	flags.StringVar(&missed, "missed", "", "how to make up for missed slots: skip, one or all; one by default")
	flags.IntVar(&s.Most, "max-missed", 0, "with --missed all: maximum number of slots to make up for, newest first; 10 by default")
	flags.StringVar(&s.Draft.Kind, "kind", "", "kind of the jobs")
	flags.StringVar(&s.Draft.Queue, "queue", "", "queue of the jobs")
	flags.StringVar(&s.Draft.Owner, "owner", "", "owner of the jobs")
	flags.StringVar(&args, "args", "", "arguments of the jobs, as JSON; {\"schedule\", \"slot\"} by default")
	flags.Int16Var(&s.Draft.Priority, "priority", 0, "priority; lower numbers are claimed first")
	flags.StringSliceVar(&s.Draft.Tags, "tag", nil, "tags of the jobs")
	flags.DurationVar(&s.Draft.ExpireIn, "expire-in", 0, "latest start of a job, after it is enqueued; a job that has not started by then fails as expired")
	by = addByFlags(c)
	return c
}

func nextRunsCommand() *cobra.Command {
	var count int
	c := &cobra.Command{
		Use: "next NAME", Short: "List the next runs of a schedule", Args: exactly("name"),
		RunE: func(c *cobra.Command, args []string) error {
			if count < 1 || count > 1000 {
				return usage(c, fmt.Errorf("--count %d: give 1 to 1000", count))
			}
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				s, err := o.Schedule(ctx, args[0], count)
				if err != nil {
					return err
				}
				return show(c, s, func(out io.Writer) { printRuns(out, s) })
			})
		},
	}
	c.Flags().IntVar(&count, "count", 10, "number of runs, at most 1000")
	return c
}

// printRuns lists the next slots, in the time zone of the schedule and in the local one.
func printRuns(out io.Writer, s ops.ScheduleStatus) {
	if len(s.Next) == 0 {
		fmt.Fprintf(out, "no next runs: %s\n", printable(scheduleState(s.Schedule)))
		return
	}
	zone, err := time.LoadLocation(s.Zone)
	if err != nil {
		zone = time.UTC
	}
	rows := make([][]string, len(s.Next))
	for n, slot := range s.Next {
		rows[n] = []string{slot.In(zone).Format("Mon 2006-01-02 15:04:05 MST"), formatTime(slot)}
	}
	table(out, []string{"NEXT", "LOCAL TIME"}, rows)
}

// namedActionCommand makes a command that changes something with a name. The change is recorded with actor, reason and request.
func namedActionCommand(verb, short, answer string, act func(o ops.Operator, ctx context.Context, name string, by ops.Actor) error) *cobra.Command {
	var by *ops.Actor
	c := &cobra.Command{
		Use: verb + " NAME", Short: short, Args: exactly("name"),
		RunE: func(c *cobra.Command, args []string) error {
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				return printAnswer(c)(args[0]+": "+answer, act(o, ctx, args[0], *by))
			})
		},
	}
	by = addByFlags(c)
	return c
}
