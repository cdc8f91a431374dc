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
	c := listSchedulesCommand("schedules", "Show and change what is enqueued by the clock")
	c.Example = `  holdfast schedules add report --store jobs.db --cron '0 9 * * MON-FRI' --zone Europe/Berlin --kind report
  holdfast schedules pause report --store jobs.db --for 48h --reason holidays
  holdfast schedules next report --store jobs.db`
	var pause time.Duration
	pausing := onNamed("pause", "Let the slots of a schedule pass by, for a while or until it is resumed", "paused", func(o ops.Desk, ctx context.Context, name string, by ops.By) error {
		return o.PauseSchedule(ctx, name, pause, by)
	})
	pausing.Flags().DurationVar(&pause, "for", 0, "how long; until resumed when left out")
	c.AddCommand(
		listSchedulesCommand("list", "List schedules by name"), addScheduleCommand(), nextRunsCommand(), pausing,
		onNamed("remove", "Forget a schedule; jobs it has made go on", "removed", ops.Desk.RemoveSchedule),
		onNamed("resume", "End a pause; its slots are not made up for", "resumed", ops.Desk.ResumeSchedule),
		onNamed("run", "Make a job out of turn", "asked for: a worker makes the job within seconds", ops.Desk.RunSchedule),
	)
	return c
}

func listSchedulesCommand(name, short string) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withDesk(c, func(ctx context.Context, o ops.Desk) error {
				list, err := o.Schedules(ctx, 1)
				if err != nil {
					return err
				}
				return show(c, list, func(out io.Writer) { printSchedules(out, list) })
			})
		},
	}
}

func printSchedules(out io.Writer, list []ops.Scheduled) {
	if len(list) == 0 {
		fmt.Fprintln(out, "nothing is enqueued by the clock: see 'holdfast schedules add --help'")
		return
	}
	rows := make([][]string, len(list))
	for n, s := range list {
		next := "-"
		if len(s.Next) > 0 {
			next = moment(s.Next[0])
		}
		rows[n] = []string{s.Name, s.Words, s.Draft.Kind, next, moment(s.Last), strconv.Itoa(s.Runs), strconv.Itoa(s.Skipped), string(s.Missed), resting(s.Schedule)}
	}
	table(out, []string{"SCHEDULE", "WHEN", "KIND", "NEXT", "LAST", "RUNS", "SKIPPED", "MISSED", "STATE"}, rows)
}

// resting says whether a schedule is paused, by whom, until when and why.
func resting(s schedule.Schedule) string {
	if !s.Paused {
		return "running"
	}
	text := "paused by " + s.Actor
	if !s.PausedUntil.IsZero() {
		text += " until " + moment(s.PausedUntil)
	}
	if s.Reason != "" {
		text += ": " + s.Reason
	}
	return text
}

func addScheduleCommand() *cobra.Command {
	var s schedule.Schedule
	var args, missed string
	var by *ops.By
	c := &cobra.Command{
		Use: "add NAME", Short: "Add a schedule, or replace the one of that name", Args: exactly("name"),
		Long: `Enqueues a job at every slot, once however many workers there are. Slots that nobody was there for are skipped, made up for by one job,
or each made up for (--missed skip, one or all). An hour that summer time skips runs once, after the gap; an hour that comes twice runs once.`,
		RunE: func(c *cobra.Command, names []string) error {
			s.Name, s.Missed = names[0], schedule.Missed(missed)
			if args != "" {
				s.Draft.Args = json.RawMessage(args)
			}
			return withDesk(c, func(ctx context.Context, o ops.Desk) error {
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
	flags.StringVar(&s.Cron, "cron", "", "minute, hour, day, month, weekday; or @daily and the like")
	flags.DurationVar(&s.Every, "every", 0, "or an interval: 90s, 5m, 24h")
	flags.StringVar(&s.Zone, "zone", "", "in which the cron expression is read, such as Europe/Berlin; UTC when left out")
	flags.StringVar(&missed, "missed", "", "what becomes of slots nobody was there for: skip, one or all; one when left out")
	flags.IntVar(&s.Most, "most", 0, "with --missed all: at most so many; 10 when left out")
	flags.StringVar(&s.Draft.Kind, "kind", "", "the kind of the job")
	flags.StringVar(&s.Draft.Queue, "queue", "", "its queue")
	flags.StringVar(&s.Draft.Owner, "owner", "", "its owner")
	flags.StringVar(&args, "args", "", "its arguments, as JSON; {\"schedule\", \"slot\"} when left out")
	flags.Int16Var(&s.Draft.Priority, "priority", 0, "its priority; a lower number is claimed first")
	flags.StringSliceVar(&s.Draft.Tags, "tag", nil, "its tags")
	flags.DurationVar(&s.Draft.ExpireIn, "expire-in", 0, "it fails as expired when it could not start within this time")
	by = byWhom(c)
	return c
}

func nextRunsCommand() *cobra.Command {
	var most int
	c := &cobra.Command{
		Use: "next NAME", Short: "List the next runs of a schedule", Args: exactly("name"),
		RunE: func(c *cobra.Command, args []string) error {
			if most < 1 || most > 1000 {
				return usage(c, fmt.Errorf("--count %d: give 1 to 1000", most))
			}
			return withDesk(c, func(ctx context.Context, o ops.Desk) error {
				s, err := o.Schedule(ctx, args[0], most)
				if err != nil {
					return err
				}
				return show(c, s, func(out io.Writer) { printRuns(out, s) })
			})
		},
	}
	c.Flags().IntVar(&most, "count", 10, "how many")
	return c
}

// printRuns lists slots in the schedule's own zone, which is the one people have in mind, and when that is here.
func printRuns(out io.Writer, s ops.Scheduled) {
	if len(s.Next) == 0 {
		fmt.Fprintf(out, "no runs ahead: %s\n", printable(resting(s.Schedule)))
		return
	}
	zone, err := time.LoadLocation(s.Zone)
	if err != nil {
		zone = time.UTC
	}
	rows := make([][]string, len(s.Next))
	for n, slot := range s.Next {
		rows[n] = []string{slot.In(zone).Format("Mon 2006-01-02 15:04:05 MST"), moment(slot)}
	}
	table(out, []string{"NEXT", "HERE"}, rows)
}

// onNamed makes a verb that decides on something that has a name, with actor, reason and request.
func onNamed(verb, short, answer string, act func(o ops.Desk, ctx context.Context, name string, by ops.By) error) *cobra.Command {
	var by *ops.By
	c := &cobra.Command{
		Use: verb + " NAME", Short: short, Args: exactly("name"),
		RunE: func(c *cobra.Command, args []string) error {
			return withDesk(c, func(ctx context.Context, o ops.Desk) error {
				return answered(c)(args[0]+": "+answer, act(o, ctx, args[0], *by))
			})
		},
	}
	by = byWhom(c)
	return c
}
