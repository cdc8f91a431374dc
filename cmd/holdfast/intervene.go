package main

import (
	"context"
	"fmt"
	"os"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// jobActionCommand makes a command that intervenes in one job. The intervention is recorded with actor and reason.
func jobActionCommand(name, short string, act func(ctx context.Context, o ops.Operator, i store.Intervention) (string, error)) *cobra.Command {
	var i store.Intervention
	c := &cobra.Command{
		Use: name + " JOB", Short: short, Args: exactly("job"),
		RunE: func(c *cobra.Command, args []string) (err error) {
			return withID(c, args[0], func(ctx context.Context, o ops.Operator) error {
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
	c.Flags().StringVar(&i.Actor, "actor", currentUser(), "person who does this")
	c.Flags().StringVar(&i.Reason, "reason", "", "reason, for the job's story")
	c.Flags().StringVar(&i.Request, "request", "", "id of the request or ticket, for the audit log")
	c.Flags().StringVar(&i.Owner, "owner", "", "only if the job belongs to this owner")
	if name == "retry" {
		c.Flags().DurationVar(&i.StuckAfter, "stuck-after", 0, "also take a processing job from its worker, if it has run for longer than this")
	}
	return c
}

// currentUser returns the name of the user who runs this command.
func currentUser() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return os.Getenv("USER")
}

func retryCommand() *cobra.Command {
	return jobActionCommand("retry", "Retry a failed, waiting or stuck job now", func(ctx context.Context, o ops.Operator, i store.Intervention) (string, error) {
		ahead, err := o.Retry(ctx, i)
		return fmt.Sprintf("queued again, %d jobs ahead of it", ahead), err
	})
}

func cancelCommand() *cobra.Command {
	return jobActionCommand("cancel", "Cancel a queued job, or request cancellation of a processing one", func(ctx context.Context, o ops.Operator, i store.Intervention) (string, error) {
		state, err := o.Cancel(ctx, i)
		if state == holdfast.Processing {
			return "cancellation requested: the job is cancelled when its worker stops", err
		}
		return "cancelled", err
	})
}

func discardCommand() *cobra.Command {
	return jobActionCommand("discard", "Remove a job from the dead letters (--reason is required)", func(ctx context.Context, o ops.Operator, i store.Intervention) (string, error) {
		return "discarded", o.Discard(ctx, i)
	})
}
