package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

func waitCommand() *cobra.Command {
	var timeout time.Duration
	c := &cobra.Command{
		Use: "wait JOB", Short: "Wait until a job has ended, and print its result", Args: exactly("job"),
		Long: `Waits until a job has ended. If it is complete, the command prints its result as JSON, or "complete" if it has none; with --json it prints the whole job.

` + waitExitCodes,
		Example: `  holdfast wait 0190f5fe-7a3b-7cc4-9d2e-1c2f3a4b5c6d --timeout 1m`,
		RunE: func(c *cobra.Command, args []string) error {
			return withID(c, args[0], func(ctx context.Context, o ops.Operator) error {
				id, err := jobID(ctx, o, args[0])
				if err != nil {
					return err
				}
				return waitForJob(ctx, c, o, id, timeout)
			})
		},
	}
	addTimeoutFlag(c, &timeout)
	return c
}

const waitExitCodes = `Exit codes: 0 the job is complete, 1 it failed or was cancelled, 75 the time of --timeout is over and the job has not ended.`

func addTimeoutFlag(c *cobra.Command, timeout *time.Duration) {
	c.Flags().DurationVar(timeout, "timeout", 0, "how long to wait for the job, such as 1m; 0: until it has ended")
}

// waitForJob waits for a job and prints its result. A job that did not complete is an error.
func waitForJob(ctx context.Context, c *cobra.Command, from holdfast.JobReader, id holdfast.ID, timeout time.Duration) error {
	if timeout < 0 {
		return usage(c, fmt.Errorf("--timeout is %v: give a positive duration, or 0 to wait until the job has ended", timeout))
	}
	waiting := ctx
	if timeout > 0 {
		limited, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		waiting = limited
	}
	job, err := holdfast.WaitJob(waiting, from, id)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return &holdfast.Error{Err: holdfast.ErrUnavailable, Message: fmt.Sprintf("job %s has not ended after %v: wait again with 'holdfast wait', or see 'holdfast explain'", id, timeout)}
	}
	if err != nil {
		return err
	}
	if err := show(c, job, func(out io.Writer) { printResult(out, job) }); err != nil {
		return err
	}
	return job.Err()
}

// printResult prints the result of a complete job.
func printResult(out io.Writer, job holdfast.Job) {
	switch {
	case job.State != holdfast.Complete: // the error says what it is
	case len(job.Result) == 0:
		fmt.Fprintln(out, "complete")
	default:
		fmt.Fprintln(out, printable(compact(job.Result)))
	}
}
