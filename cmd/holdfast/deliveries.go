package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

func deliveriesCommand() *cobra.Command {
	c := listDeliveriesCommand("deliveries", "Show deliveries to subscriptions; send one again")
	c.Example = `  holdfast deliveries --store jobs.db --state failed
  holdfast deliveries resend DELIVERY --store jobs.db --reason "the receiver lost it"`
	c.AddCommand(listDeliveriesCommand("list", "List deliveries, newest first"), showDeliveryCommand(), resendCommand())
	return c
}

func listDeliveriesCommand(name, short string) *cobra.Command {
	var f store.Filter
	var of, state string
	c := &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			var id holdfast.ID
			if of != "" {
				if id, err = holdfast.ParseID(of); err != nil {
					return err
				}
			}
			f.State = holdfast.State(state)
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				jobs, cursor, err := o.Deliveries(ctx, id, f)
				if err != nil {
					return err
				}
				answer := struct {
					Deliveries []holdfast.Job `json:"deliveries"`
					Cursor     string         `json:"cursor,omitempty"`
				}{jobs, cursor}
				return show(c, answer, func(out io.Writer) { printDeliveries(out, jobs, cursor) })
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&of, "subscription", "", "only deliveries of this subscription")
	flags.StringVar(&state, "state", "", "only in this state: queued, processing, complete, failed or cancelled")
	flags.StringVar(&f.Code, "code", "", "only with this code as last failure")
	flags.IntVar(&f.Limit, "limit", 50, "number of deliveries, at most 200")
	flags.StringVar(&f.Cursor, "cursor", "", "continue after the page that printed this cursor")
	return c
}

func printDeliveries(out io.Writer, jobs []holdfast.Job, cursor string) {
	if len(jobs) == 0 {
		fmt.Fprintln(out, "no deliveries match")
		return
	}
	printJobs(out, jobs, cursor)
}

func showDeliveryCommand() *cobra.Command {
	ask := func(ctx context.Context, o ops.Operator, id holdfast.ID) (ops.Delivery, error) {
		return o.Delivery(ctx, id)
	}
	return jobQueryCommand("show", "Show one delivery: its attempts and the receiver's answer", ask, func(out io.Writer, d ops.Delivery) {
		printJobs(out, []holdfast.Job{d.Job}, "")
		say := labelled(out)
		if len(d.Job.Result) > 0 {
			say("receipt", "%s", d.Job.Result)
		}
		if f := d.Job.LastFailure; f != nil {
			say("last failure", "%s: %s", f.Code, f.Message)
		}
		printStory(out, d.Story)
	})
}

func resendCommand() *cobra.Command {
	return jobActionCommand("resend", "Deliver again: a failed delivery as the same job, a complete one as a new job, both with the same event id", func(ctx context.Context, o ops.Operator, i store.Intervention) (string, error) {
		id, err := o.Resend(ctx, i)
		return fmt.Sprintf("queued as %s", id), err
	})
}
