package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

func groupsCommand() *cobra.Command {
	c := listGroupsCommand("groups", "Show groups of jobs and how they ended; retry, cancel or seal one")
	c.Example = `  holdfast groups --store jobs.db --state partial
  holdfast groups show GROUP --store jobs.db
  holdfast groups retry GROUP --store jobs.db --reason "the printer has paper again"`
	c.AddCommand(
		listGroupsCommand("list", "List groups, newest first"), showGroupCommand(),
		onGroupCommand("retry", "Send round what failed in a group and all that was cancelled because of it", func(ctx context.Context, o ops.Desk, i holdfast.Intervention) (string, error) {
			n, err := o.RetryGroup(ctx, i)
			return fmt.Sprintf("%d members are queued again; the group is processing", n), err
		}),
		onGroupCommand("cancel", "Cancel a group and what has not ended in it", func(ctx context.Context, o ops.Desk, i holdfast.Intervention) (string, error) {
			return "cancelling: a worker ends what has not ended yet", o.CancelGroup(ctx, i)
		}),
		onGroupCommand("seal", "Say that a group has all its members, when the program that made it no longer can", func(ctx context.Context, o ops.Desk, i holdfast.Intervention) (string, error) {
			return "sealed: it settles when all its members have ended", o.SealGroup(ctx, i)
		}),
	)
	return c
}

func listGroupsCommand(name, short string) *cobra.Command {
	var f holdfast.GroupFilter
	var state, parent string
	c := &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if f.State = holdfast.GroupState(state); parent != "" {
				if f.Parent, err = holdfast.ParseID(parent); err != nil {
					return err
				}
			}
			return withDesk(c, func(ctx context.Context, o ops.Desk) error {
				groups, cursor, err := o.Groups(ctx, f)
				if err != nil {
					return err
				}
				answer := struct {
					Groups []holdfast.Group `json:"groups"`
					Cursor string           `json:"cursor,omitempty"`
				}{groups, cursor}
				return show(c, answer, func(out io.Writer) { printGatherings(out, groups, cursor) })
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&state, "state", "", "open, processing, ready, partial, failed, cancelled or expired")
	flags.StringVar(&f.Owner, "owner", "", "only this owner's")
	flags.StringVar(&f.Name, "name", "", "only of this name")
	flags.StringVar(&parent, "parent", "", "only those inside this group")
	flags.IntVar(&f.Limit, "limit", 50, "how many, at most 200")
	flags.StringVar(&f.Cursor, "cursor", "", "go on after the page that gave this cursor")
	return c
}

func printGatherings(out io.Writer, groups []holdfast.Group, cursor string) {
	if len(groups) == 0 {
		fmt.Fprintln(out, "no groups match")
		return
	}
	rows := make([][]string, len(groups))
	for n, g := range groups {
		rows[n] = []string{g.ID.String(), orDash(g.Name), orDash(g.Owner), string(g.State), strconv.Itoa(g.Generation), moment(g.CreatedAt), moment(g.SealedAt), moment(g.SettledAt)}
	}
	table(out, []string{"GROUP", "NAME", "OWNER", "STATE", "GENERATION", "CREATED", "SEALED", "SETTLED"}, rows)
	if cursor != "" {
		fmt.Fprintf(out, "more: --cursor %s\n", cursor)
	}
}

func showGroupCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show GROUP", Short: "Tell all about one group: how its members stand, what failed, what was said", Args: exactly("group"),
		RunE: func(c *cobra.Command, args []string) error {
			return withID(c, args[0], func(ctx context.Context, o ops.Desk) error {
				id, err := groupID(ctx, o, args[0])
				if err != nil {
					return err
				}
				g, err := o.Group(ctx, id)
				if err != nil {
					return err
				}
				return show(c, g, func(out io.Writer) { printGathering(out, g) })
			})
		},
	}
}

func printGathering(out io.Writer, g ops.Gathering) {
	printGatherings(out, []holdfast.Group{g.Group}, "")
	m := g.Group.Members
	say := sayer(out)
	say("members", "%d of %d complete, %d failed, %d cancelled; %d in workers' hands, %d queued, %d wait for others", m.Complete, m.Total, m.Failed, m.Cancelled, m.Processing, m.Queued, m.Waiting)
	if g.Group.Quorum > 0 {
		say("quorum", "%d complete make it ready", g.Group.Quorum)
	}
	if !g.Group.ExpireAt.IsZero() {
		say("expires", "%s", moment(g.Group.ExpireAt))
	}
	if !g.Group.Parent.IsZero() {
		say("inside", "%s", g.Group.Parent)
	}
	for _, t := range g.Group.Then {
		say("then", "%s when it is %s", t.Draft.Kind, outcome(t.On))
	}
	for _, e := range g.Story {
		say("said", "%s %s by %s %s", moment(e.At), e.Name, e.Actor, e.Reason)
	}
	if len(g.Inside) > 0 {
		fmt.Fprintln(out, "groups inside it:")
		printGatherings(out, g.Inside, "")
	}
	if len(g.Live) > 0 {
		fmt.Fprintln(out, "in workers' hands, the newest:")
		printJobs(out, g.Live, "")
	}
	if len(g.Failed) > 0 {
		fmt.Fprintln(out, "dead letters, the newest:")
		printJobs(out, g.Failed, "")
		fmt.Fprintf(out, "to send them round again with all that follows: holdfast groups retry %s\n", g.Group.ID)
	}
}

func outcome(on holdfast.GroupState) string {
	if on == "" {
		return "ready, partial or failed"
	}
	return string(on)
}

// sayer prints lines that begin with what they are about.
func sayer(out io.Writer) func(what, format string, args ...any) {
	return func(what, format string, args ...any) {
		fmt.Fprintf(out, "%-14s %s\n", what, printable(fmt.Sprintf(format, args...)))
	}
}

// onGroupCommand makes a verb that intervenes in one group, with actor, reason and request.
func onGroupCommand(name, short string, act func(ctx context.Context, o ops.Desk, i holdfast.Intervention) (string, error)) *cobra.Command {
	var by *ops.By
	var owner string
	c := &cobra.Command{
		Use: name + " GROUP", Short: short, Args: exactly("group"),
		RunE: func(c *cobra.Command, args []string) error {
			return withID(c, args[0], func(ctx context.Context, o ops.Desk) error {
				id, err := groupID(ctx, o, args[0])
				if err != nil {
					return err
				}
				i := holdfast.Intervention{Group: id, Owner: owner, Actor: by.Actor, Reason: by.Reason, Request: by.Request}
				if err := sureOfGroup(ctx, c, o, id); err != nil {
					return err
				}
				return answered(c)(act(ctx, o, i))
			})
		},
	}
	by = byWhom(c)
	c.Flags().StringVar(&owner, "owner", "", "refuse unless the group is this owner's")
	if name != "seal" {
		asks(c)
	}
	return c
}

// sureOfGroup asks before many members are moved.
func sureOfGroup(ctx context.Context, c *cobra.Command, o ops.Grouping, id holdfast.ID) error {
	if !mustAsk(c) {
		return nil
	}
	g, err := o.Group(ctx, id)
	if err != nil {
		return err
	}
	m := g.Group.Members
	if c.Name() == "cancel" {
		return sure(c, fmt.Sprintf("cancel %d of %d members?", m.Live(), m.Total))
	}
	return sure(c, fmt.Sprintf("send round %d failed and up to %d cancelled of %d members?", m.Failed, m.Cancelled, m.Total))
}

// answered prints what was done, unless it was not.
func answered(c *cobra.Command) func(answer string, err error) error {
	return func(answer string, err error) error {
		if err == nil {
			fmt.Fprintln(c.OutOrStdout(), printable(answer))
		}
		return err
	}
}
