package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

func groupsCommand() *cobra.Command {
	c := listGroupsCommand("groups", "Show groups of jobs; retry, cancel or seal one")
	c.Example = `  holdfast groups --store jobs.db --state partial
  holdfast groups show GROUP --store jobs.db
  holdfast groups graph GROUP --store jobs.db
  holdfast groups retry GROUP --store jobs.db --reason "the printer has paper again"`
	c.AddCommand(
		listGroupsCommand("list", "List groups, newest first"), showGroupCommand(), graphGroupCommand(),
		groupActionCommand("retry", "Retry the failed members of a group, and the members that were cancelled because of them", func(ctx context.Context, o ops.Operator, i store.Intervention) (string, error) {
			n, err := o.RetryGroup(ctx, i)
			return fmt.Sprintf("%d members are queued again; the group is processing", n), err
		}),
		groupActionCommand("cancel", "Cancel a group and its members that have not ended", func(ctx context.Context, o ops.Operator, i store.Intervention) (string, error) {
			return "cancelling: a worker cancels the members that have not ended", o.CancelGroup(ctx, i)
		}),
		groupActionCommand("seal", "Seal a group: no more members are added, so it can settle", func(ctx context.Context, o ops.Operator, i store.Intervention) (string, error) {
			return "sealed: it settles when all its members have ended", o.SealGroup(ctx, i)
		}),
	)
	return c
}

func listGroupsCommand(name, short string) *cobra.Command {
	var f store.GroupFilter
	var state, parent string
	c := &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if f.State = holdfast.GroupState(state); parent != "" {
				if f.Parent, err = holdfast.ParseID(parent); err != nil {
					return err
				}
			}
			return withOperator(c, func(ctx context.Context, o ops.Operator) error {
				groups, cursor, err := o.Groups(ctx, f)
				if err != nil {
					return err
				}
				answer := struct {
					Groups []holdfast.Group `json:"groups"`
					Cursor string           `json:"cursor,omitempty"`
				}{groups, cursor}
				return show(c, answer, func(out io.Writer) { printGroups(out, groups, cursor) })
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&state, "state", "", "only in this state: open, processing, ready, partial, failed, cancelled or expired")
	flags.StringVar(&f.Owner, "owner", "", "only groups of this owner")
	flags.StringVar(&f.Name, "name", "", "only groups with this name")
	flags.StringVar(&parent, "parent", "", "only groups inside this group")
	flags.IntVar(&f.Limit, "limit", 50, "number of groups, at most 200")
	flags.StringVar(&f.Cursor, "cursor", "", "continue after the page that printed this cursor")
	return c
}

func printGroups(out io.Writer, groups []holdfast.Group, cursor string) {
	if len(groups) == 0 {
		fmt.Fprintln(out, "no groups match")
		return
	}
	rows := make([][]string, len(groups))
	for n, g := range groups {
		rows[n] = []string{g.ID.String(), orDash(g.Name), orDash(g.Owner), string(g.State), strconv.Itoa(g.Generation), formatTime(g.CreatedAt), formatTime(g.SealedAt), formatTime(g.SettledAt)}
	}
	table(out, []string{"GROUP", "NAME", "OWNER", "STATE", "GENERATION", "CREATED", "SEALED", "SETTLED"}, rows)
	if cursor != "" {
		fmt.Fprintf(out, "more: --cursor %s\n", cursor)
	}
}

func showGroupCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show GROUP", Short: "Show one group: the states of its members, failures, history", Args: exactly("group"),
		RunE: func(c *cobra.Command, args []string) error {
			return withID(c, args[0], func(ctx context.Context, o ops.Operator) error {
				id, err := groupID(ctx, o, args[0])
				if err != nil {
					return err
				}
				g, err := o.Group(ctx, id)
				if err != nil {
					return err
				}
				return show(c, g, func(out io.Writer) { printGroup(out, g) })
			})
		},
	}
}

func printGroup(out io.Writer, g ops.GroupDetail) {
	printGroups(out, []holdfast.Group{g.Group}, "")
	m := g.Group.Members
	say := labelled(out)
	ended := fmt.Sprintf("%d of %d complete, %d failed, %d cancelled", m.Complete, m.Total, m.Failed, m.Cancelled)
	if m.Skipped > 0 {
		ended += fmt.Sprintf(", %d skipped", m.Skipped)
	}
	say("members", "%s; %d processing, %d queued, %d waiting for other members", ended, m.Processing, m.Queued, m.Waiting)
	if g.Group.Quorum > 0 {
		say("quorum", "ready when %d are complete", g.Group.Quorum)
	}
	if !g.Group.ExpireAt.IsZero() {
		say("expires", "%s", formatTime(g.Group.ExpireAt))
	}
	if !g.Group.Parent.IsZero() {
		say("inside", "%s", g.Group.Parent)
	}
	for _, t := range g.Group.Then {
		say("then", "enqueues %s when the group is %s", t.Draft.Kind, outcome(t.On))
	}
	for _, e := range g.Story {
		say("history", "%s %s by %s %s", formatTime(e.At), e.Name, e.Actor, e.Reason)
	}
	if len(g.Inside) > 0 {
		fmt.Fprintln(out, "groups inside it:")
		printGroups(out, g.Inside, "")
	}
	if len(g.Live) > 0 {
		fmt.Fprintln(out, "processing, newest first:")
		printJobs(out, g.Live, "")
	}
	if len(g.Failed) > 0 {
		fmt.Fprintln(out, "dead letters, newest first:")
		printJobs(out, g.Failed, "")
		fmt.Fprintf(out, "to retry them and the members that depend on them: holdfast groups retry %s\n", g.Group.ID)
	}
}

func outcome(on holdfast.GroupState) string {
	if on == "" {
		return "ready, partial or failed"
	}
	return string(on)
}

// labelled returns a function that prints lines with a label in front.
func labelled(out io.Writer) func(what, format string, args ...any) {
	return func(what, format string, args ...any) {
		fmt.Fprintf(out, "%-14s %s\n", what, printable(fmt.Sprintf(format, args...)))
	}
}

// groupActionCommand makes a command that intervenes in one group. The intervention is recorded with actor, reason and request.
func groupActionCommand(name, short string, act func(ctx context.Context, o ops.Operator, i store.Intervention) (string, error)) *cobra.Command {
	var by *ops.Actor
	var owner string
	var compensated bool
	c := &cobra.Command{
		Use: name + " GROUP", Short: short, Args: exactly("group"),
		RunE: func(c *cobra.Command, args []string) error {
			return withID(c, args[0], func(ctx context.Context, o ops.Operator) error {
				id, err := groupID(ctx, o, args[0])
				if err != nil {
					return err
				}
				i := store.Intervention{Group: id, Owner: owner, Actor: by.Name, Reason: by.Reason, Request: by.Request, Compensated: compensated}
				if err := confirmGroup(ctx, c, o, id); err != nil {
					return err
				}
				return printAnswer(c)(act(ctx, o, i))
			})
		},
	}
	by = addByFlags(c)
	c.Flags().StringVar(&owner, "owner", "", "only if the group belongs to this owner")
	if name != "seal" {
		addYesFlag(c)
	}
	if name == "retry" {
		c.Flags().BoolVar(&compensated, "compensated", false, "also if a member that ran because of a failure is complete, such as a refund: what it compensated is done again")
	}
	return c
}

// confirmGroup asks for confirmation before an action that changes many members.
func confirmGroup(ctx context.Context, c *cobra.Command, o ops.Groups, id holdfast.ID) error {
	if !mustConfirm(c) {
		return nil
	}
	g, err := o.Group(ctx, id)
	if err != nil {
		return err
	}
	m := g.Group.Members
	if c.Name() == "cancel" {
		return confirm(c, fmt.Sprintf("cancel %d of %d members?", m.Live(), m.Total))
	}
	return confirm(c, fmt.Sprintf("retry %d failed and up to %d cancelled of %d members?", m.Failed, m.Cancelled, m.Total))
}

// printAnswer returns a function that prints the answer, or returns the error.
func printAnswer(c *cobra.Command) func(answer string, err error) error {
	return func(answer string, err error) error {
		if err == nil {
			fmt.Fprintln(c.OutOrStdout(), printable(answer))
		}
		return err
	}
}
