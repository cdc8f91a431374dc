package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// An eventsForm holds the flags of 'events' and 'tail': which part of the feed to print.
type eventsForm struct {
	after  int64
	limit  int
	follow bool
	group  string
	wanted subscription.Subscription
}

func eventsCommand() *cobra.Command {
	var form eventsForm
	c := &cobra.Command{
		Use: "events", Short: "Print the feed of events in order; --follow waits for new ones", Args: cobra.NoArgs,
		Long: `Prints the feed: events of jobs that a server, a subscription or a group asks for, and always the actions of people and the events of groups,
breakers, schedules and duties. Each event has a number; --after N continues after number N. If retention has deleted events in between, it
says how many. With --json every event is one line.`,
		Example: `  holdfast events --store jobs.db --follow
  holdfast events --store jobs.db --after 1200 --event failed --event 'group.*' --json`,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if form.group != "" {
				id, err := holdfast.ParseID(form.group)
				if err != nil {
					return err
				}
				form.wanted.Groups = []holdfast.ID{id}
			}
			if form.limit < 1 || form.limit > 1000 {
				return usage(c, fmt.Errorf("--limit %d: give 1 to 1000", form.limit))
			}
			return withOperator(c, func(ctx context.Context, o ops.Operator) error { return form.printFeed(ctx, c, o) })
		},
	}
	flags := c.Flags()
	flags.Int64Var(&form.after, "after", -1, "print events after this number; without it, the last ones")
	flags.IntVar(&form.limit, "limit", 50, "number of events to read, at most 1000; filters apply to these")
	flags.BoolVar(&form.follow, "follow", false, "keep running and print new events")
	flags.StringSliceVar(&form.wanted.Events, "event", nil, "only these events: failed, group.partial, breaker.*")
	flags.StringSliceVar(&form.wanted.Kinds, "kind", nil, "only events of jobs of these kinds")
	flags.StringSliceVar(&form.wanted.Owners, "owner", nil, "only events of these owners")
	flags.StringSliceVar(&form.wanted.Codes, "code", nil, "only events with these failure codes")
	flags.StringVar(&form.group, "group", "", "only events of this group and its members")
	return c
}

// printFeed prints one page of the feed, and with --follow every later page until ctx ends.
func (f *eventsForm) printFeed(ctx context.Context, c *cobra.Command, o ops.Operator) error {
	var page store.Feed
	var err error
	if f.after < 0 {
		page, err = o.LatestEvents(ctx, f.limit)
	} else {
		page, err = o.Feed(ctx, f.after, f.limit)
	}
	if err != nil {
		return err
	}
	if err := f.printPage(c, page); err != nil {
		return err
	}
	if !f.follow {
		if page.Next < page.Head {
			fmt.Fprintf(c.ErrOrStderr(), "more: --after %d (the newest is %d)\n", page.Next, page.Head)
		}
		return nil
	}
	for page, err := range o.Tail(ctx, page.Next) {
		if err != nil {
			return err
		}
		if err := f.printPage(c, page); err != nil {
			return err
		}
	}
	return nil // ctx ended: the user has stopped watching
}

// printPage prints the events of a page that match. It first reports events that were purged before they could be read.
func (f *eventsForm) printPage(c *cobra.Command, page store.Feed) error {
	if page.Missed > 0 {
		fmt.Fprintf(c.ErrOrStderr(), "%d events up to number %d have been purged and are missing here\n", page.Missed, page.Purged)
	}
	asJSON, _ := c.Flags().GetBool("json")
	for _, e := range page.Events {
		if f.filtered() && !f.wanted.Matches(e) {
			continue
		}
		if !asJSON {
			fmt.Fprintln(c.OutOrStdout(), printable(eventLine(e)))
			continue
		}
		text, err := jsonLine(e)
		if err != nil {
			return err
		}
		fmt.Fprintln(c.OutOrStdout(), text)
	}
	return nil
}

func (f *eventsForm) filtered() bool {
	w := f.wanted
	return len(w.Events)+len(w.Kinds)+len(w.Owners)+len(w.Codes)+len(w.Groups) > 0
}

// eventLine formats an event as one line.
func eventLine(e store.Event) string {
	about := e.Subject
	if !e.Job.IsZero() {
		about = e.Job.String()
	}
	var more []string
	add := func(format, value string) {
		if value != "" {
			more = append(more, fmt.Sprintf(format, value))
		}
	}
	add("%s", e.Kind)
	add("owner %s", e.Owner)
	add("%s", e.Code)
	add("%s", e.Message)
	add("by %s", e.Actor)
	add("%s", e.Reason)
	return fmt.Sprintf("%8d  %s  %-20s %s  %s", e.Seq, formatTime(e.At), subscription.Type(e), about, strings.Join(more, ", "))
}
