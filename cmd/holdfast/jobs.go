package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

func jobsCommand() *cobra.Command {
	var f store.Filter
	var state, redriveOf, group string
	var benign bool
	c := &cobra.Command{
		Use:   "jobs",
		Short: "List jobs, newest first",
		Example: `  holdfast jobs --store jobs.db --state failed --code GW_5XX
  holdfast jobs --store jobs.db --dead-letters --older-than 24h`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			f.State = holdfast.State(state)
			if c.Flags().Changed("benign") {
				f.Benign = &benign
			}
			if redriveOf != "" {
				if f.Redrive, err = holdfast.ParseID(redriveOf); err != nil {
					return err
				}
			}
			if group != "" {
				if f.Group, err = holdfast.ParseID(group); err != nil {
					return err
				}
			}
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
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
	flags.StringVar(&state, "state", "", "only in this state: queued, processing, complete, failed or cancelled")
	addFilterFlags(c, &f)
	flags.StringVar(&redriveOf, "redrive", "", "only jobs that this redrive sent")
	flags.StringVar(&group, "group", "", "only members of this group")
	flags.BoolVar(&f.DeadLetters, "dead-letters", false, "only dead letters: failed jobs that are neither discarded nor benign")
	flags.BoolVar(&benign, "benign", false, "only jobs with a benign failure; --benign=false: only jobs with another failure")
	flags.BoolVar(&f.Retrying, "retrying", false, "only queued jobs that have failed before")
	flags.StringVar(&f.Worker, "worker", "", "only jobs that this worker is processing")
	flags.IntVar(&f.Limit, "limit", 50, "number of jobs, at most 200")
	flags.StringVar(&f.Cursor, "cursor", "", "continue after the page that printed this cursor")
	return c
}

// addFilterFlags adds the flags that select jobs.
func addFilterFlags(c *cobra.Command, f *store.Filter) {
	flags := c.Flags()
	flags.StringVar(&f.Kind, "kind", "", "only jobs of this kind")
	flags.StringVar(&f.Queue, "queue", "", "only jobs in this queue")
	flags.StringVar(&f.Owner, "owner", "", "only jobs of this owner")
	flags.StringVar(&f.Tag, "tag", "", "only jobs with this tag")
	flags.StringVar(&f.Dependency, "dependency", "", "only jobs that call this dependency")
	flags.StringVar(&f.Code, "code", "", "only jobs whose last failure has this code")
	flags.StringVar(&f.Fingerprint, "fingerprint", "", "only jobs of this error group: whose last failure has this fingerprint")
	flags.IntVar(&f.Generation, "generation", 0, "only jobs in this generation; 1: never retried manually or redriven")
	flags.DurationVar(&f.OlderThan, "older-than", 0, "only jobs older than this")
	flags.DurationVar(&f.NewerThan, "newer-than", 0, "only jobs newer than this")
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
		rows[n] = []string{job.ID.String(), stateText(job), job.Kind, job.Queue, orDash(job.Owner), strconv.Itoa(job.Failures), orDash(code), formatTime(job.CreatedAt), formatTime(job.DueAt)}
	}
	table(out, []string{"JOB", "STATE", "KIND", "QUEUE", "OWNER", "FAILURES", "CODE", "CREATED", "DUE"}, rows)
	if cursor != "" {
		fmt.Fprintf(out, "more: --cursor %s\n", cursor)
	}
}

// stateText is the state of a job, and whether it waits for other jobs.
func stateText(job holdfast.Job) string {
	if job.Waiting {
		return "queued (waiting)"
	}
	return string(job.State)
}
