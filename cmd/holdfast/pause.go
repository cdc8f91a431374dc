package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

func pauseCommand() *cobra.Command {
	return holdCommand("pause", "Hold a queue or a kind: its jobs stay queued and spend nothing", func(ctx context.Context, o *ops.Service, h holdfast.Hold) (string, error) {
		if h.For > 0 {
			return fmt.Sprintf("paused for %v", h.For), o.Pause(ctx, h)
		}
		return "paused until resumed", o.Pause(ctx, h)
	})
}

func resumeCommand() *cobra.Command {
	return holdCommand("resume", "Lift a hold", func(ctx context.Context, o *ops.Service, h holdfast.Hold) (string, error) {
		return "resumed", o.Resume(ctx, h)
	})
}

func holdCommand(name, short string, act func(ctx context.Context, o *ops.Service, h holdfast.Hold) (string, error)) *cobra.Command {
	var h holdfast.Hold
	c := &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		Example: fmt.Sprintf("  holdfast %s --store jobs.db --queue mail", name),
		RunE: func(c *cobra.Command, _ []string) error {
			return withStore(c, func(ctx context.Context, _ holdfast.Store, o *ops.Service) error {
				answer, err := act(ctx, o, h)
				if err == nil {
					fmt.Fprintln(c.OutOrStdout(), answer)
				}
				return err
			})
		},
	}
	c.Flags().StringVar(&h.Queue, "queue", "", "the queue")
	c.Flags().StringVar(&h.Kind, "kind", "", "or the kind")
	c.Flags().StringVar(&h.Actor, "actor", me(), "who does this")
	c.Flags().StringVar(&h.Reason, "reason", "", "why, for whoever asks")
	if name == "pause" {
		c.Flags().DurationVar(&h.For, "for", 0, "how long; until resumed when left out")
	}
	return c
}
