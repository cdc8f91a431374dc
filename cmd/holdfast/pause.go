package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

func pauseCommand() *cobra.Command {
	var h store.Hold
	var rate store.Rate
	c := holdCommand("pause", "Pause or limit a queue, kind, owner, dependency or tag", &h, func(ctx context.Context, o ops.Operator) (string, error) {
		if rate.PerSecond > 0 || rate.Burst > 0 {
			h.Rate = withBurst(rate)
		}
		return paused(h), o.Pause(ctx, h)
	})
	c.Long = `Pauses a queue, kind, owner, dependency or tag: its jobs stay queued at no cost, and jobs that are processing continue. With --at-most or
--per-second it is limited instead. A name that ends in * stands for every name with that prefix; --at-most then applies to each name
separately.`
	c.Example = `  holdfast pause --store jobs.db --queue mail --for 10m --reason "mail server maintenance"
  holdfast pause --store jobs.db --dependency gateway --retries-only
  holdfast pause --store jobs.db --owner '*' --at-most 5
  holdfast pause --store jobs.db --dependency gateway --per-second 2 --burst 10`
	flags := c.Flags()
	flags.DurationVar(&h.For, "for", 0, "duration; without it, until resumed")
	flags.BoolVar(&h.Retries, "retries-only", false, "hold only jobs that have failed before")
	flags.IntVar(&h.AtMost, "at-most", 0, "maximum number of jobs that are processing at the same time")
	flags.Float64Var(&rate.PerSecond, "per-second", 0, "maximum rate of job starts per second")
	flags.Float64Var(&rate.Burst, "burst", 0, "with --per-second: maximum burst of job starts; by default one second's worth")
	return c
}

// withBurst completes a rate: a burst of one second's worth unless it has one, and a full bucket to begin with.
func withBurst(r store.Rate) *store.Rate {
	if r.Burst == 0 {
		r.Burst = max(r.PerSecond, 1)
	}
	r.Level = r.Burst
	return &r
}

func paused(h store.Hold) string {
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
	var h store.Hold
	c := holdCommand("resume", "End a pause or a limit", &h, func(ctx context.Context, o ops.Operator) (string, error) {
		return "resumed", o.Resume(ctx, h)
	})
	c.Example = `  holdfast resume --store jobs.db --queue mail
  holdfast resume --store jobs.db --dependency gateway --source budget`
	c.Flags().StringVar(&h.Source, "source", store.SourceOperator, "source of the hold: operator, budget, limit, window or handler")
	return c
}

func holdCommand(name, short string, h *store.Hold, act func(ctx context.Context, o ops.Operator) (string, error)) *cobra.Command {
	c := &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				if err := confirmHold(ctx, c, o, *h); err != nil {
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
	c.Flags().StringVar(&h.Queue, "queue", "", "queue, or name prefix followed by *")
	c.Flags().StringVar(&h.Kind, "kind", "", "or a kind")
	c.Flags().StringVar(&h.Owner, "owner", "", "or an owner")
	c.Flags().StringVar(&h.Dependency, "dependency", "", "or a dependency")
	c.Flags().StringVar(&h.Tag, "tag", "", "or a tag")
	addActorFlags(c, &h.Actor, &h.Reason)
	if name == "pause" {
		addYesFlag(c)
	}
	return c
}

// confirmHold asks for confirmation before a hold with a name that ends in *, because it applies to many names.
func confirmHold(ctx context.Context, c *cobra.Command, o ops.Statistics, h store.Hold) error {
	scope, name := h.Scope()
	if !mustConfirm(c) || !strings.HasSuffix(name, "*") {
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
	return confirm(c, fmt.Sprintf("hold every %s that matches %s? %d%s jobs are queued now", scope, name, waiting, more))
}

// addActorFlags adds the flags of every command that changes something: --actor and --reason.
func addActorFlags(c *cobra.Command, actor, reason *string) {
	c.Flags().StringVar(actor, "actor", currentUser(), "person who does this")
	c.Flags().StringVar(reason, "reason", "", "reason, for the audit log")
}

// addByFlags adds --actor, --reason and --request, and returns their values.
func addByFlags(c *cobra.Command) *ops.Actor {
	by := &ops.Actor{}
	addActorFlags(c, &by.Name, &by.Reason)
	c.Flags().StringVar(&by.Request, "request", "", "id of the request or ticket, for the audit log")
	return by
}
