package postgres

import (
	"context"
	"slices"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// afterMax is how many rows of holdfast_after one statement inserts.
const afterMax = 20_000

// joinGroups checks that entries may become members of the groups they name, and locks these groups against a seal until the entries are committed.
// Groups with entries that wait for other members are flagged for AdvanceGroups: these members may have ended already, or may end before the new rows are
// visible.
func (s *Store) joinGroups(ctx context.Context, q session, fresh []entry) error {
	var groups, flagged []holdfast.ID
	for i := range fresh {
		if e := &fresh[i]; !e.Group.IsZero() && !slices.Contains(groups, e.Group) {
			groups = append(groups, e.Group)
		}
		if e := &fresh[i]; len(e.After) > 0 && !slices.Contains(flagged, e.Group) {
			flagged = append(flagged, e.Group)
		}
	}
	if len(groups) == 0 {
		return nil
	}
	how := "share_lock_groups"
	if len(flagged) > 0 {
		how = "lock_groups"
	}
	if err := s.lockOpenGroups(ctx, q, how, groups); err != nil || len(flagged) == 0 {
		return err
	}
	if err := s.checkUpstreams(ctx, q, fresh); err != nil {
		return err
	}
	return q.exec(ctx, s.sql["flag_groups"], ids(flagged))
}

// lockOpenGroups locks groups, and returns an error if one does not exist or is sealed.
func (s *Store) lockOpenGroups(ctx context.Context, q session, how string, groups []holdfast.ID) error {
	sealed := map[holdfast.ID]bool{}
	err := q.query(ctx, s.sql[how], []any{ids(groups)}, func(scan func(...any) error) error {
		var text string
		var done bool
		if err := scan(&text, &done); err != nil {
			return err
		}
		id, err := holdfast.ParseID(text)
		sealed[id] = done
		return err
	})
	if err != nil {
		return err
	}
	for _, id := range groups {
		if done, there := sealed[id]; !there {
			return rule.NoGroup(id)
		} else if done {
			return rule.Sealed(id)
		}
	}
	return nil
}

// checkUpstreams returns an error if an entry waits for a job that is neither a member of the same group nor an earlier entry of the call.
func (s *Store) checkUpstreams(ctx context.Context, q session, fresh []entry) error {
	earlier := map[holdfast.ID]holdfast.ID{}
	var upstream, group column
	for i := range fresh {
		e := &fresh[i]
		for _, id := range e.After {
			if of, ok := earlier[id]; !ok || of != e.Group {
				upstream.id(id)
				group.id(e.Group)
			}
		}
		earlier[e.ID] = e.Group
	}
	if len(upstream.text) == 0 {
		return nil
	}
	nonMember := ""
	err := q.query(ctx, s.sql["find_non_member"], []any{upstream.String(), group.String()}, func(scan func(...any) error) error { return scan(&nonMember) })
	if err == nil && nonMember != "" {
		id, err := holdfast.ParseID(nonMember)
		if err != nil {
			return err
		}
		return rule.NotMember(id)
	}
	return err
}

// writeAfter records which entries wait for which jobs.
func (s *Store) writeAfter(ctx context.Context, q session, fresh []entry) error {
	var upstream, job, regardless column
	rows := 0
	write := func() error {
		err := q.exec(ctx, s.sql["after_add"], upstream.String(), job.String(), regardless.String())
		upstream, job, regardless, rows = column{}, column{}, column{}, 0
		return err
	}
	for i := range fresh {
		e := &fresh[i]
		for _, id := range e.After {
			upstream.id(id)
			job.id(e.ID)
			regardless.bool(e.AfterAll)
			rows++
		}
		if rows >= afterMax {
			if err := write(); err != nil {
				return err
			}
		}
	}
	if rows == 0 {
		return nil
	}
	return write()
}

// retargetAfter makes entries that wait for a draft which matched an existing job wait for that job.
func retargetAfter(entries []entry, receipts []holdfast.Receipt, fresh []entry) []entry {
	existing := map[holdfast.ID]holdfast.ID{}
	for i := range entries {
		if entries[i].given && receipts[i].ID != entries[i].ID {
			existing[entries[i].ID] = receipts[i].ID
		}
	}
	for i := range fresh {
		if len(existing) == 0 || len(fresh[i].After) == 0 {
			continue
		}
		var after []holdfast.ID
		for _, id := range fresh[i].After {
			if job, ok := existing[id]; ok {
				id = job
			}
			if !slices.Contains(after, id) {
				after = append(after, id)
			}
		}
		changed := *fresh[i].Draft // the original draft is kept for a further attempt
		changed.After = after
		fresh[i].Draft = &changed
	}
	return fresh
}
