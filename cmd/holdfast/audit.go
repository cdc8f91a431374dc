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
		Use: "audit", Short: "Show the audit log: what people did, when, why, and for which request", Args: cobra.NoArgs,
		Long: `Shows what people did to jobs, groups, breakers, schedules, duties and rules. Without --job or --subject it reads the feed, as far back as the feed
is kept. With one of them it reads the history of that job or subject, which is kept longer. 'holdfast doctor' verifies that no entry was changed.`,
		Example: `  holdfast audit --store jobs.db --actor ann
  holdfast audit --store jobs.db --subject retention`,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if job != "" {
				if f.Job, err = holdfast.ParseID(job); err != nil {
					return err
				}
			}
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				trail, err := o.AuditLog(ctx, f)
				if err != nil {
					return err
				}
				return show(c, trail, func(out io.Writer) { printTrail(out, trail) })
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.Actor, "actor", "", "only actions of this person")
	flags.StringVar(&job, "job", "", "only actions on this job")
	flags.StringVar(&f.Subject, "subject", "", "only actions on this subject: group/<id>, duty/promote, schedule/<name>, retention, ...")
	flags.Int64Var(&f.After, "after", 0, "only events after this number of the feed")
	flags.IntVar(&f.Limit, "limit", 200, "number of entries, at most 200")
	return c
}

func printTrail(out io.Writer, trail ops.AuditLog) {
	if trail.Missed > 0 {
		fmt.Fprintf(out, "%d earlier events have been purged\n", trail.Missed)
	}
	rows := make([][]string, len(trail.Events))
	for n, e := range trail.Events {
		about := e.Subject
		if !e.Job.IsZero() {
			about = e.Job.String()
		}
		rows[n] = []string{formatTime(e.At), e.Actor, e.Name, orDash(about), orDash(e.Request), orDash(e.Reason)}
	}
	if len(rows) == 0 {
		fmt.Fprintln(out, "no entries match")
	} else {
		table(out, []string{"WHEN", "WHO", "ACTION", "ON", "REQUEST", "REASON"}, rows)
	}
	if trail.Next < trail.Head {
		fmt.Fprintf(out, "more: --after %d\n", trail.Next)
	}
}
