package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/ops"
)

func redriveCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "redrive", Short: "Send dead letters round again, carefully, or discard them; alone it lists redrives",
		Long: `Sends selected dead letters round again at a steady pace: a few first (--canary), then the rest, and no further when too many fail again
(--stop-above). The workers do it: with none alive nothing moves. Every job is taken at most once by a redrive, whatever is killed meanwhile.`,
		Example: `  holdfast redrive preview --store jobs.db --code GW_5XX
  holdfast redrive start --store jobs.db --code GW_5XX --canary 10 --rate 20 --stop-above 20% --reason "the gateway is repaired"
  holdfast redrive show REDRIVE --store jobs.db --watch`,
		Args: cobra.NoArgs,
		RunE: listRedrives,
	}
	c.AddCommand(
		startRedriveCommand(), previewRedriveCommand(), listRedrivesCommand(), showRedriveCommand(),
		moveRedriveCommand("pause", "Keep a redrive from taking more; what it has taken goes on", "paused", ops.Desk.PauseRedrive),
		moveRedriveCommand("resume", "Let a paused or stopped redrive go on", "resumed", ops.Desk.ResumeRedrive),
		moveRedriveCommand("cancel", "End a redrive for good; what it has taken goes on", "cancelled", ops.Desk.CancelRedrive),
	)
	return c
}

// An orderForm is a redrive's order as it stands on the command line.
type orderForm struct {
	order            redrive.Order
	patch, stopAbove string
	taken            string // by which redrive
}

func (o *orderForm) flags(c *cobra.Command) {
	flags := c.Flags()
	selector(c, &o.order.Filter)
	flags.StringVar(&o.taken, "redrive", "", "only what this earlier redrive took")
	flags.BoolVar(&o.order.All, "all", false, "every dead letter there is")
	flags.IntVar(&o.order.Limit, "limit", 0, "so many in all; no limit when left out")
	flags.IntVar(&o.order.Canary, "canary", 0, "so many first; the rest only when these have ended well enough")
	flags.Float64Var(&o.order.PerSecond, "rate", redrive.DefaultPerSecond, "so many a second")
	flags.IntVar(&o.order.InFlight, "in-flight", redrive.DefaultInFlight, "so many under way at once")
	flags.StringVar(&o.stopAbove, "stop-above", "50%", "stop when more than this share fails again; 100% never stops")
	flags.IntVar(&o.order.StopAfter, "stop-after", redrive.DefaultStopAfter, "judge when so many have ended")
	flags.StringVar(&o.patch, "patch", "", "a JSON merge patch of each job's arguments, such as '{\"size\": \"small\"}'")
	flags.StringVar(&o.order.Queue, "to-queue", "", "put them into this queue instead of their own")
	flags.BoolVar(&o.order.Discard, "discard", false, "take them off the dead letters instead")
	whoAndWhy(c, &o.order.Actor, &o.order.Reason)
	c.Flags().StringVar(&o.order.Request, "request", "", "the id of the request or ticket in which it was asked for")
}

// read completes the order.
func (o *orderForm) read(c *cobra.Command) (redrive.Order, error) {
	order := o.order
	number, isPercent := strings.CutSuffix(strings.TrimSpace(o.stopAbove), "%")
	share, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return order, usage(c, fmt.Errorf("--stop-above %q: give a share such as 20%% or 0.2", o.stopAbove))
	}
	if isPercent {
		share /= 100
	}
	if order.StopAbove = share; share == 0 {
		order.StopAbove = 1e-9 // none may fail again; 0 would be the default
	}
	if o.patch != "" {
		order.Patch = json.RawMessage(o.patch)
	}
	if o.taken != "" {
		order.Filter.Redrive, err = holdfast.ParseID(o.taken)
	}
	return order, err
}

func previewRedriveCommand() *cobra.Command {
	var form orderForm
	c := &cobra.Command{
		Use: "preview", Short: "Say what a redrive would take and what not, and change nothing", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			order, err := form.read(c)
			if err != nil {
				return err
			}
			return withDesk(c, func(ctx context.Context, o ops.Desk) error {
				preview, err := o.PreviewRedrive(ctx, order)
				if err != nil {
					return err
				}
				return show(c, preview, func(out io.Writer) { printPreview(out, preview) })
			})
		},
	}
	form.flags(c)
	return c
}

func startRedriveCommand() *cobra.Command {
	var form orderForm
	var dry, watch bool
	c := &cobra.Command{
		Use: "start", Short: "Start a redrive: shows what it would do, and asks", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			order, err := form.read(c)
			if err != nil {
				return err
			}
			return withDesk(c, func(ctx context.Context, o ops.Desk) error {
				preview, err := o.PreviewRedrive(ctx, order)
				if err != nil {
					return err
				}
				if dry {
					return show(c, preview, func(out io.Writer) { printPreview(out, preview) })
				}
				printPreview(c.ErrOrStderr(), preview)
				if err := sure(c, question(preview)); err != nil {
					return err
				}
				return startRedrive(ctx, c, o, order, watch)
			})
		},
	}
	form.flags(c)
	c.Flags().BoolVar(&dry, "dry-run", false, "only show what it would do")
	c.Flags().BoolVar(&watch, "watch", false, "stay until it ends, stops or is paused")
	asks(c)
	return c
}

func startRedrive(ctx context.Context, c *cobra.Command, o ops.Desk, order redrive.Order, watch bool) error {
	id, err := o.StartRedrive(ctx, order)
	if err != nil {
		return err
	}
	if watch {
		r, err := o.Redrive(ctx, id)
		if err == nil {
			r, err = watchRedrive(ctx, c.ErrOrStderr(), o, r)
		}
		if err != nil {
			return err
		}
		return show(c, r, func(out io.Writer) { printRedrive(out, r) })
	}
	answer := struct {
		ID holdfast.ID `json:"id"`
	}{id}
	return show(c, answer, func(out io.Writer) {
		fmt.Fprintf(out, "started %s\nwatch it: holdfast redrive show %s --watch\n", id, id)
	})
}

// question is what is asked before a redrive starts.
func question(p ops.Preview) string {
	verb := "send"
	if p.Order.Discard {
		verb = "discard"
	}
	return fmt.Sprintf("%s %s dead letters?", verb, atMost(willTake(p)))
}

func willTake(p ops.Preview) int {
	if p.Order.Limit > 0 {
		return min(p.Eligible, p.Order.Limit)
	}
	return p.Eligible
}

func printPreview(out io.Writer, p ops.Preview) {
	verb := "would be sent round again"
	if p.Order.Discard {
		verb = "would be discarded"
	}
	fmt.Fprintf(out, "%s dead letters %s, in %v at least\n", atMost(willTake(p)), verb, p.Takes)
	for _, not := range p.Ineligible {
		fmt.Fprintf(out, "%s would not: %s\n", atMost(not.Jobs), not.Reason)
	}
	if len(p.Sample) > 0 {
		fmt.Fprintln(out, "the first of them:")
		printJobs(out, p.Sample, "")
	}
	for _, note := range p.Notes {
		fmt.Fprintln(out, "note:", printable(note))
	}
}

// moveRedriveCommand makes a verb that decides on one redrive, with actor and reason.
func moveRedriveCommand(name, short, answer string, act func(o ops.Desk, ctx context.Context, id holdfast.ID, by ops.By) error) *cobra.Command {
	var by *ops.By
	c := &cobra.Command{
		Use: name + " REDRIVE", Short: short, Args: exactly("redrive"),
		RunE: func(c *cobra.Command, args []string) error {
			return withID(c, args[0], func(ctx context.Context, o ops.Desk) error {
				id, err := redriveID(ctx, o, args[0])
				if err == nil {
					err = act(o, ctx, id, *by)
				}
				if err == nil {
					fmt.Fprintln(c.OutOrStdout(), answer)
				}
				return err
			})
		},
	}
	by = byWhom(c)
	return c
}
