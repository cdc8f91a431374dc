package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/ops"
)

// An eventsForm is what somebody wants to see of the feed.
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
		Use: "events", Short: "Tell what happened, in order, and go on with --follow", Args: cobra.NoArgs,
		Long: `Tells the feed: what befell jobs, as far as somebody listens for it (a subscription, a group), and always what people did and what became of
groups, breakers, schedules and duties. Each event has a number; --after goes on behind one. What retention has deleted is said.
With --json every event is one line.`,
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
			return withDesk(c, func(ctx context.Context, o ops.Desk) error { return form.tell(ctx, c, o) })
		},
	}
	flags := c.Flags()
	flags.Int64Var(&form.after, "after", -1, "begin behind this number; the last ones when left out")
	flags.IntVar(&form.limit, "limit", 50, "how many to look at, at most 1000")
	flags.BoolVar(&form.follow, "follow", false, "stay, and tell what happens")
	flags.StringSliceVar(&form.wanted.Events, "event", nil, "only these: failed, group.partial, breaker.*")
	flags.StringSliceVar(&form.wanted.Kinds, "kind", nil, "only of jobs of these kinds")
	flags.StringSliceVar(&form.wanted.Owners, "owner", nil, "only of these owners")
	flags.StringSliceVar(&form.wanted.Codes, "code", nil, "only with these codes")
	flags.StringVar(&form.group, "group", "", "only of this group and its members")
	return c
}

func (f *eventsForm) tell(ctx context.Context, c *cobra.Command, o ops.Desk) error {
	var page holdfast.Feed
	var err error
	if f.after < 0 {
		page, err = o.Latest(ctx, f.limit)
	} else {
		page, err = o.Feed(ctx, f.after, f.limit)
	}
	if err != nil {
		return err
	}
	if err := f.print(c, page); err != nil {
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
		if err := f.print(c, page); err != nil {
			return err
		}
	}
	return nil // whoever watched has seen enough
}

// print tells a page. What is missing is said first.
func (f *eventsForm) print(c *cobra.Command, page holdfast.Feed) error {
	if page.Missed > 0 {
		fmt.Fprintf(c.ErrOrStderr(), "%d events up to number %d have been purged: they are missing here\n", page.Missed, page.Purged)
	}
	asJSON, _ := c.Flags().GetBool("json")
	for _, e := range page.Events {
		if f.narrow() && !f.wanted.Matches(e) {
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

func (f *eventsForm) narrow() bool {
	w := f.wanted
	return len(w.Events)+len(w.Kinds)+len(w.Owners)+len(w.Codes)+len(w.Groups) > 0
}

// eventLine puts an event into one line.
func eventLine(e holdfast.Event) string {
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
	add("of %s", e.Owner)
	add("%s", e.Code)
	add("%s", e.Message)
	add("by %s", e.Actor)
	add("%s", e.Reason)
	return fmt.Sprintf("%8d  %s  %-20s %s  %s", e.Seq, moment(e.At), subscription.Type(e), about, strings.Join(more, ", "))
}
