package postgres

import (
	"context"
	"slices"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// afterMax is how many rows of who waits for whom are written by one statement.
const afterMax = 20_000

// join makes sure that entries may become members of the groups they name, and holds these against a seal until the entries are there.
// Whoever waits for others has the group looked at: those may have ended by now, or end before anybody can see who waits.
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

// openGroups locks groups, and refuses those that are not there or take no members any more.
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

// acquainted refuses an entry that waits for a job which is no member of its group, or comes later in the call.
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

// wait writes who waits for whom.
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

// behind lets entries that wait for a draft which met a twin wait for the twin.
func retargetAfter(entries []entry, receipts []holdfast.Receipt, fresh []entry) []entry {
	twins := map[holdfast.ID]holdfast.ID{}
	for i := range entries {
		if entries[i].given && receipts[i].ID != entries[i].ID {
			twins[entries[i].ID] = receipts[i].ID
		}
	}
	for i := range fresh {
		if len(twins) == 0 || len(fresh[i].After) == 0 {
			continue
		}
		var after []holdfast.ID
		for _, id := range fresh[i].After {
			if twin, met := twins[id]; met {
				id = twin
			}
			if !slices.Contains(after, id) {
				after = append(after, id)
			}
		}
		changed := *fresh[i].Draft // the entries keep theirs, for another try
		changed.After = after
		fresh[i].Draft = &changed
	}
	return fresh
}
