package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

func auditCommand() *cobra.Command {
	var f ops.AuditFilter
	var job string
	c := &cobra.Command{
		Use: "audit", Short: "Tell what people did: who, what, when, why, and in which request", Args: cobra.NoArgs,
		Long: `Tells what people did to jobs, groups, breakers, schedules, duties and rules. Without --job or --subject it reads the feed, as far back as that
is kept; with one of them the story of that thing, which is kept longer. That nobody has changed these lines is what 'doctor' checks.`,
		Example: `  holdfast audit --store jobs.db --actor ann
  holdfast audit --store jobs.db --subject retention`,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if job != "" {
				if f.Job, err = holdfast.ParseID(job); err != nil {
					return err
				}
			}
			return withDesk(c, func(ctx context.Context, o ops.Desk) error {
				trail, err := o.Trail(ctx, f)
				if err != nil {
					return err
				}
				return show(c, trail, func(out io.Writer) { printTrail(out, trail) })
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.Actor, "actor", "", "only this person's")
	flags.StringVar(&job, "job", "", "only to this job")
	flags.StringVar(&f.Subject, "subject", "", "only to this: group/<id>, duty/promote, schedule/<name>, retention, ...")
	flags.Int64Var(&f.After, "after", 0, "in the feed, begin behind this number")
	flags.IntVar(&f.Limit, "limit", 200, "how many, at most 200")
	return c
}

func printTrail(out io.Writer, trail ops.Trail) {
	if trail.Missed > 0 {
		fmt.Fprintf(out, "%d events before these have been purged\n", trail.Missed)
	}
	rows := make([][]string, len(trail.Events))
	for n, e := range trail.Events {
		about := e.Subject
		if !e.Job.IsZero() {
			about = e.Job.String()
		}
		rows[n] = []string{moment(e.At), e.Actor, e.Name, orDash(about), orDash(e.Request), orDash(e.Reason)}
	}
	if len(rows) == 0 {
		fmt.Fprintln(out, "nobody did anything that matches")
	} else {
		table(out, []string{"WHEN", "WHO", "WHAT", "TO", "REQUEST", "WHY"}, rows)
	}
	if trail.Next < trail.Head {
		fmt.Fprintf(out, "more: --after %d\n", trail.Next)
	}
}
