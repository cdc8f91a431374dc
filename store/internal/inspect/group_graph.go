package inspect

import (
	"context"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// What GroupGraph reads at most. A group may have a hundred thousand members.
const (
	graphMembers = 1_000
	graphWaits   = 10_000
)

// GroupGraph returns the first members of a group and what they wait for. The two statements read one after the other, so a wait may be missing of a member that is
// purged meanwhile.
func (i *Inspector) GroupGraph(ctx context.Context, id holdfast.ID) (g store.GroupGraph, err error) {
	groups, err := i.groups(ctx, "g.id = $1", []any{id})
	if err != nil {
		return g, err
	}
	if len(groups) == 0 {
		return g, rule.NoGroup(id)
	}
	at := map[holdfast.ID]int{}
	// One more of each shows whether there are more.
	err = i.q.Query(ctx, i.statements["inspect_members"], []any{id, graphMembers + 1}, func(r Row) error {
		member := store.Member{Job: r.ID(0), Kind: r.Text(1), Step: r.Text(2), State: holdfast.State(r.Text(3)), Waiting: r.Bool(4), Skipped: r.Bool(5), Code: r.Text(6), Cause: r.ID(7)}
		if _, twice := at[member.Job]; twice {
			return nil // a damaged store may have a job in two batches
		}
		if len(g.Members) == graphMembers {
			g.More = true
			return nil
		}
		at[member.Job] = len(g.Members)
		g.Members = append(g.Members, member)
		return nil
	})
	if err != nil || len(g.Members) == 0 {
		return g, err
	}
	waits := 0
	err = i.q.Query(ctx, i.statements["inspect_member_waits"], []any{id, graphMembers, graphWaits + 1}, func(r Row) error {
		n, ok := at[r.ID(0)]
		if waits++; waits > graphWaits {
			g.More = true
		} else if ok {
			g.Members[n].When = append(g.Members[n].When, holdfast.Condition{Job: r.ID(1), On: rule.OutcomeOf(r.Bool(2), r.Text(3))})
		}
		return nil
	})
	return g, err
}
