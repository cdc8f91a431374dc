package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

func jobsCommand() *cobra.Command {
	var f holdfast.Filter
	var state, taken, group string
	var expected bool
	c := &cobra.Command{
		Use:   "jobs",
		Short: "List jobs, newest first",
		Example: `  holdfast jobs --store jobs.db --state failed --code GW_5XX
  holdfast jobs --store jobs.db --dead-letters --older-than 24h`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			f.State = holdfast.State(state)
			if c.Flags().Changed("benign") {
				f.Benign = &expected
			}
			if taken != "" {
				if f.Redrive, err = holdfast.ParseID(taken); err != nil {
					return err
				}
			}
			if group != "" {
				if f.Group, err = holdfast.ParseID(group); err != nil {
					return err
				}
			}
			return withDesk(c, func(ctx context.Context, o ops.Desk) error {
				jobs, cursor, err := o.Jobs(ctx, f)
				if err != nil {
					return err
				}
				answer := struct {
					Jobs   []holdfast.Job `json:"jobs"`
					Cursor string         `json:"cursor,omitempty"`
				}{jobs, cursor}
				return show(c, answer, func(out io.Writer) { printJobs(out, jobs, cursor) })
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&state, "state", "", "queued, processing, complete, failed or cancelled")
	selector(c, &f)
	flags.StringVar(&taken, "redrive", "", "only what this redrive took")
	flags.StringVar(&group, "group", "", "only members of this group")
	flags.BoolVar(&f.DeadLetters, "dead-letters", false, "only failed jobs that are neither discarded nor benign")
	flags.BoolVar(&expected, "benign", false, "only jobs that failed as was to be expected; --benign=false: only those that failed otherwise")
	flags.BoolVar(&f.Retrying, "retrying", false, "only queued jobs that failed before")
	flags.StringVar(&f.Worker, "worker", "", "only those in this worker's hands")
	flags.IntVar(&f.Limit, "limit", 50, "how many, at most 200")
	flags.StringVar(&f.Cursor, "cursor", "", "go on after the page that gave this cursor")
	return c
}

// selector adds the flags by which jobs are selected.
func selector(c *cobra.Command, f *holdfast.Filter) {
	flags := c.Flags()
	flags.StringVar(&f.Kind, "kind", "", "only this kind")
	flags.StringVar(&f.Queue, "queue", "", "only this queue")
	flags.StringVar(&f.Owner, "owner", "", "only this owner's")
	flags.StringVar(&f.Tag, "tag", "", "only with this tag")
	flags.StringVar(&f.Dependency, "dependency", "", "only those that call this")
	flags.StringVar(&f.Code, "code", "", "only with this code of the last failure")
	flags.StringVar(&f.Fingerprint, "fingerprint", "", "only with this fingerprint of the last failure: of this error group")
	flags.IntVar(&f.Generation, "generation", 0, "only in this generation; 1: never sent round again")
	flags.DurationVar(&f.OlderThan, "older-than", 0, "only enqueued longer ago than this")
	flags.DurationVar(&f.YoungerThan, "younger-than", 0, "only enqueued less long ago than this")
}

func printJobs(out io.Writer, jobs []holdfast.Job, cursor string) {
	if len(jobs) == 0 {
		fmt.Fprintln(out, "no jobs match")
		return
	}
	rows := make([][]string, len(jobs))
	for n, job := range jobs {
		code := ""
		if job.LastFailure != nil {
			code = job.LastFailure.Code
		}
		rows[n] = []string{job.ID.String(), standing(job), job.Kind, job.Queue, orDash(job.Owner), strconv.Itoa(job.Failures), orDash(code), moment(job.CreatedAt), moment(job.DueAt)}
	}
	table(out, []string{"JOB", "STATE", "KIND", "QUEUE", "OWNER", "FAILURES", "CODE", "CREATED", "DUE"}, rows)
	if cursor != "" {
		fmt.Fprintf(out, "more: --cursor %s\n", cursor)
	}
}

// standing says where a job stands, and whether it waits for other members of its group.
func standing(job holdfast.Job) string {
	if job.Waiting {
		return "queued (waits)"
	}
	return string(job.State)
}
