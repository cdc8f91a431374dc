package main

import (
	"context"
	"fmt"
	"os"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

// onJob makes a verb that intervenes in one job, with actor and reason.
func onJob(name, short string, act func(ctx context.Context, o ops.Desk, i holdfast.Intervention) (string, error)) *cobra.Command {
	var i holdfast.Intervention
	c := &cobra.Command{
		Use: name + " JOB", Short: short, Args: exactly("job"),
		RunE: func(c *cobra.Command, args []string) (err error) {
			return withID(c, args[0], func(ctx context.Context, o ops.Desk) error {
				if i.Job, err = jobID(ctx, o, args[0]); err != nil {
					return err
				}
				answer, err := act(ctx, o, i)
				if err == nil {
					fmt.Fprintln(c.OutOrStdout(), answer)
				}
				return err
			})
		},
	}
	c.Flags().StringVar(&i.Actor, "actor", me(), "who does this")
	c.Flags().StringVar(&i.Reason, "reason", "", "why, for the job's story")
	c.Flags().StringVar(&i.Request, "request", "", "the id of the request or ticket in which it was asked for")
	c.Flags().StringVar(&i.Owner, "owner", "", "refuse unless the job is this owner's")
	if name == "retry" {
		c.Flags().DurationVar(&i.StuckAfter, "stuck-after", 0, "also take it from a worker that has been at it for longer than this")
	}
	return c
}

// me is who the operating system says the person is.
func me() string {
	if who, err := user.Current(); err == nil && who.Username != "" {
		return who.Username
	}
	return os.Getenv("USER")
}

func retryCommand() *cobra.Command {
	return onJob("retry", "Send a failed, waiting or stuck job round again at once", func(ctx context.Context, o ops.Desk, i holdfast.Intervention) (string, error) {
		ahead, err := o.Retry(ctx, i)
		return fmt.Sprintf("queued again, %d ahead of it", ahead), err
	})
}

func cancelCommand() *cobra.Command {
	return onJob("cancel", "Cancel a queued job, or ask a processing one to stop", func(ctx context.Context, o ops.Desk, i holdfast.Intervention) (string, error) {
		state, err := o.Cancel(ctx, i)
		if state == holdfast.Processing {
			return "asked to stop: it ends cancelled as soon as its worker lets go", err
		}
		return "cancelled", err
	})
}

func discardCommand() *cobra.Command {
	return onJob("discard", "Take a failed job off the dead letters (a reason is required)", func(ctx context.Context, o ops.Desk, i holdfast.Intervention) (string, error) {
		return "discarded", o.Discard(ctx, i)
	})
}
