package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/ops"
)

func listRedrivesCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List redrives, newest first", Args: cobra.NoArgs,
		RunE: listRedrives,
	}
}

func listRedrives(c *cobra.Command, _ []string) error {
	return withOperator(c, func(ctx context.Context, o ops.Operator) error {
		redrives, err := o.Redrives(ctx)
		if err != nil && len(redrives) == 0 {
			return err
		}
		return errors.Join(show(c, redrives, func(out io.Writer) { printRedrives(out, redrives) }), err)
	})
}

func printRedrives(out io.Writer, redrives []redrive.Progress) {
	if len(redrives) == 0 {
		fmt.Fprintln(out, "no redrives")
		return
	}
	rows := make([][]string, len(redrives))
	for n, p := range redrives {
		t := p.Counts
		rows[n] = []string{p.ID.String(), string(p.State), strconv.Itoa(t.Taken), strconv.Itoa(t.InFlight), strconv.Itoa(t.Complete), strconv.Itoa(t.Failed), formatTime(p.StartedAt), p.Spec.Actor, short(orDash(p.Why), 60)}
	}
	table(out, []string{"REDRIVE", "STATE", "SENT", "IN FLIGHT", "COMPLETE", "FAILED AGAIN", "STARTED", "BY", "REASON"}, rows)
}

func showRedriveCommand() *cobra.Command {
	var watch bool
	c := &cobra.Command{
		Use: "show REDRIVE", Short: "Show the progress of a redrive, refused jobs and jobs that failed again", Args: exactly("redrive"),
		RunE: func(c *cobra.Command, args []string) error {
			return withID(c, args[0], func(ctx context.Context, o ops.Operator) error {
				id, err := redriveID(ctx, o, args[0])
				if err != nil {
					return err
				}
				r, err := o.Redrive(ctx, id)
				if watch && err == nil {
					r, err = watchRedrive(ctx, c.ErrOrStderr(), o, r)
				}
				if err != nil {
					return err
				}
				return show(c, r, func(out io.Writer) { printRedrive(out, r) })
			})
		},
	}
	c.Flags().BoolVar(&watch, "watch", false, "show progress until the redrive ends, stops or is paused")
	return c
}

// watchRedrive prints the progress of a redrive until it is no longer running or ctx ends: as a bar on a terminal, otherwise as a line for every change.
func watchRedrive(ctx context.Context, out io.Writer, o ops.Operator, r ops.Redrive) (ops.Redrive, error) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	bar := isTerminal(out)
	last := ""
	for {
		text := progressLine(r)
		switch {
		case bar:
			fmt.Fprintf(rawWriter(out), "\r%s\x1b[K", printable(text))
		case text != last:
			fmt.Fprintln(out, text)
		}
		last = text
		if r.State != redrive.Running {
			break
		}
		select {
		case <-ctx.Done():
			return r, nil // the user has stopped watching
		case <-tick.C:
		}
		next, err := o.Redrive(ctx, r.ID)
		if err != nil && ctx.Err() == nil {
			return r, err
		}
		if err == nil {
			r = next
		}
	}
	if bar {
		fmt.Fprintln(out)
	}
	return r, nil
}

// progressLine formats the progress of a redrive as one line.
func progressLine(r ops.Redrive) string {
	total := r.Eligible
	if r.Spec.Limit > 0 {
		total = min(total, r.Spec.Limit)
	}
	t := r.Counts
	total = max(total, t.Taken+r.RefusedJobs, 1)
	ended := t.Complete + t.Failed + t.Cancelled + t.Discarded + r.RefusedJobs
	const width = 30
	full := min(ended*width/total, width)
	text := fmt.Sprintf("[%s%s] %d of %s ended, %d complete, %d failed again, %d in flight, %s", strings.Repeat("#", full), strings.Repeat(".", width-full),
		ended, countText(total), t.Complete, t.Failed, t.InFlight, r.State)
	switch {
	case r.State == redrive.Running && r.Workers == 0:
		text += ": no worker is alive"
	case r.Left > 0:
		text += fmt.Sprintf(", about %v left", r.Left)
	}
	return text
}

func printRedrive(out io.Writer, r ops.Redrive) {
	fmt.Fprintln(out, progressLine(r))
	say := func(what, format string, args ...any) {
		fmt.Fprintf(out, "%-14s %s\n", what, printable(fmt.Sprintf(format, args...)))
	}
	say("reason", "%s", orDash(r.Why))
	say("started", "%s by %s: %s", formatTime(r.StartedAt), r.Spec.Actor, orDash(r.Spec.Reason))
	say("jobs", "%d sent, %d discarded, %d cancelled, %d refused", r.Counts.Taken, r.Counts.Discarded, r.Counts.Cancelled, r.RefusedJobs)
	for _, refusal := range r.Refused {
		say("refused", "%s: %s", refusal.Job, refusal.Why)
	}
	for _, e := range r.Story {
		say("history", "%s %s by %s %s", formatTime(e.At), e.Name, e.Actor, e.Reason)
	}
	if len(r.FailedAgain) > 0 {
		fmt.Fprintln(out, "failed again:")
		printJobs(out, r.FailedAgain, "")
	}
	if r.State == redrive.Running && r.Workers == 0 {
		fmt.Fprintln(out, "no worker is alive: start one to continue the redrive")
	}
}
