package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

func pauseCommand() *cobra.Command {
	var h holdfast.Hold
	var rate holdfast.Rate
	c := holdCommand("pause", "Hold a queue, kind, owner, dependency or tag, or let only so much of it through", &h, func(ctx context.Context, o ops.Desk) (string, error) {
		if rate.PerSecond > 0 || rate.Burst > 0 {
			h.Rate = withBurst(rate)
		}
		return paused(h), o.Pause(ctx, h)
	})
	c.Long = `Holds a queue, a kind, an owner, a dependency or a tag: its jobs stay queued and spend nothing; what is being processed goes on.
With --at-most or --per-second it is limited instead. A name that ends in * stands for every name that begins so; with --at-most each
of them may have that many.`
	c.Example = `  holdfast pause --store jobs.db --queue mail --for 10m --reason "the server moves"
  holdfast pause --store jobs.db --dependency gateway --retries
  holdfast pause --store jobs.db --owner '*' --at-most 5
  holdfast pause --store jobs.db --dependency gateway --per-second 2 --burst 10`
	flags := c.Flags()
	flags.DurationVar(&h.For, "for", 0, "how long; until resumed when left out")
	flags.BoolVar(&h.Retries, "retries", false, "keep back only jobs that have failed before")
	flags.IntVar(&h.AtMost, "at-most", 0, "let so many be in workers' hands at once")
	flags.Float64Var(&rate.PerSecond, "per-second", 0, "let so many through a second")
	flags.Float64Var(&rate.Burst, "burst", 0, "and so many at once after a rest; a second's worth when left out")
	return c
}

// withBurst completes a rate: a second's worth at once unless it says otherwise, and a full bucket to begin with.
func withBurst(r holdfast.Rate) *holdfast.Rate {
	if r.Burst == 0 {
		r.Burst = max(r.PerSecond, 1)
	}
	r.Level = r.Burst
	return &r
}

func paused(h holdfast.Hold) string {
	verb := "paused"
	if !h.Closed() {
		verb = "limited"
	}
	if h.For > 0 {
		return fmt.Sprintf("%s for %v", verb, h.For)
	}
	return verb + " until resumed"
}

func resumeCommand() *cobra.Command {
	var h holdfast.Hold
	c := holdCommand("resume", "Lift a hold", &h, func(ctx context.Context, o ops.Desk) (string, error) {
		return "resumed", o.Resume(ctx, h)
	})
	c.Example = `  holdfast resume --store jobs.db --queue mail
  holdfast resume --store jobs.db --dependency gateway --source budget`
	c.Flags().StringVar(&h.Source, "source", holdfast.SourceOperator, "whose hold: operator, budget, limit, window or handler")
	return c
}

func holdCommand(name, short string, h *holdfast.Hold, act func(ctx context.Context, o ops.Desk) (string, error)) *cobra.Command {
	c := &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withDesk(c, func(ctx context.Context, o ops.Desk) error {
				if err := sureOfHold(ctx, c, o, *h); err != nil {
					return err
				}
				answer, err := act(ctx, o)
				if err == nil {
					fmt.Fprintln(c.OutOrStdout(), answer)
				}
				return err
			})
		},
	}
	c.Flags().StringVar(&h.Queue, "queue", "", "the queue")
	c.Flags().StringVar(&h.Kind, "kind", "", "or the kind")
	c.Flags().StringVar(&h.Owner, "owner", "", "or the owner")
	c.Flags().StringVar(&h.Dependency, "dependency", "", "or what the jobs call")
	c.Flags().StringVar(&h.Tag, "tag", "", "or a tag")
	whoAndWhy(c, &h.Actor, &h.Reason)
	if name == "pause" {
		asks(c)
	}
	return c
}

// sureOfHold asks before everything of a kind is held: a name that ends in * stands for many.
func sureOfHold(ctx context.Context, c *cobra.Command, o ops.Figuring, h holdfast.Hold) error {
	scope, name := h.On()
	if !mustAsk(c) || !strings.HasSuffix(name, "*") {
		return nil
	}
	stats, err := o.Stats(ctx)
	if err != nil {
		return err
	}
	waiting, more := 0, ""
	for _, q := range stats.Queues {
		waiting += q.Ready + q.Later
		if slices.Contains(q.AtLeast, "ready") || slices.Contains(q.AtLeast, "later") {
			more = " or more"
		}
	}
	return sure(c, fmt.Sprintf("hold every %s like %s, of %d%s jobs that are queued now?", scope, name, waiting, more))
}

// whoAndWhy are the flags of every verb that changes something for a person.
func whoAndWhy(c *cobra.Command, actor, reason *string) {
	c.Flags().StringVar(actor, "actor", me(), "who does this")
	c.Flags().StringVar(reason, "reason", "", "why, for whoever asks")
}

// byWhom are the same flags for verbs that also keep in which request they were asked for.
func byWhom(c *cobra.Command) *ops.By {
	by := &ops.By{}
	whoAndWhy(c, &by.Actor, &by.Reason)
	c.Flags().StringVar(&by.Request, "request", "", "the id of the request or ticket in which it was asked for")
	return by
}
