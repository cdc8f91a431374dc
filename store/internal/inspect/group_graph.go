package inspect

import (
	"bytes"
	"context"
	"slices"

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
	seen := map[holdfast.ID]bool{}
	// One more of each shows whether there are more.
	err = i.q.Query(ctx, i.statements["inspect_members"], []any{id, graphMembers + 1}, func(r Row) error {
		member := store.Member{Job: r.ID(0), Kind: r.Text(1), Step: r.Text(2), State: holdfast.State(r.Text(3)), Waiting: r.Bool(4), Skipped: r.Bool(5), Code: r.Text(6), Cause: r.ID(7)}
		if !seen[member.Job] { // a damaged store may have a job in two batches
			g.Members = append(g.Members, member)
		}
		seen[member.Job] = true
		return nil
	})
	if err != nil || len(g.Members) == 0 {
		return g, err
	}
	slices.SortFunc(g.Members, func(a, b store.Member) int { return bytes.Compare(a.Job[:], b.Job[:]) })
	if len(g.Members) > graphMembers {
		g.Members, g.More = g.Members[:graphMembers], true
	}
	at := make(map[holdfast.ID]int, len(g.Members))
	for n := range g.Members {
		at[g.Members[n].Job] = n
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
	for n := range g.Members {
		slices.SortFunc(g.Members[n].When, func(a, b holdfast.Condition) int { return bytes.Compare(a.Job[:], b.Job[:]) })
	}
	return g, err
}
