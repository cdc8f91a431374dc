package postgres

import (
	"context"
	"slices"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// prepareDrafts returns the entries of the jobs that settlements enqueue, by the settlement; nil if there are none. Their lanes are made before the transaction.
// Settlements with an answer are left out.
func (s *Store) prepareDrafts(ctx context.Context, settlements []store.Settlement, answers []error) (map[int][]entry, error) {
	var drafts map[int][]entry
	for i := range settlements {
		if len(settlements[i].Enqueue) == 0 || answers[i] != nil {
			continue
		}
		entries, err := s.prepare(ctx, s.work, settlements[i].Enqueue, rule.Drafts)
		if rule.IsRefusal(err) {
			answers[i] = rule.RefusedDrafts(settlements[i].Job, err)
			continue
		}
		if err != nil {
			return nil, explain("settle", err)
		}
		if drafts == nil {
			drafts = map[int][]entry{}
		}
		drafts[i] = entries
	}
	return drafts, nil
}

// enqueueDrafts enqueues the jobs of the settlements that complete their jobs in this transaction, in order, and returns those that are new. After an error it
// returns those that it tried to write.
func (t *settleCall) enqueueDrafts(ctx context.Context, drafts map[int][]entry) (fresh []entry, err error) {
	if err := t.p.flush(ctx); err != nil {
		return nil, err
	}
	q := pgxSession{t.p.conn}
	for _, i := range t.drafted {
		written, err := t.s.enqueueOf(ctx, q, t.settlements[i].Job, drafts[i])
		fresh = append(fresh, written...)
		if err != nil {
			return fresh, err
		}
	}
	return fresh, nil
}

// enqueueOf enqueues entries with the settlement of a job, and returns those that are new or whose content replaces that of a job. The group of the job takes them although it is sealed: until the
// transaction has committed it has a live member, and so it has not settled.
func (s *Store) enqueueOf(ctx context.Context, q session, job holdfast.ID, entries []entry) ([]entry, error) {
	own, err := s.groupOf(ctx, q, job, entries)
	if err != nil {
		return nil, err
	}
	a, err := s.admit(ctx, q, entries, false)
	if err != nil {
		return nil, err
	}
	if err := a.write(ctx, nil, own); err != nil {
		return a.fresh, err
	}
	return a.changed(), s.raiseCursor(ctx, q, own, a.fresh)
}

// groupOf returns the group of a job if entries may become members of it, and otherwise the zero id.
func (s *Store) groupOf(ctx context.Context, q session, job holdfast.ID, entries []entry) (group holdfast.ID, err error) {
	if !slices.ContainsFunc(entries, func(e entry) bool { return !e.Group.IsZero() }) {
		return group, nil
	}
	err = q.query(ctx, s.sql["find_group_of_job"], []any{job.String()}, func(scan func(...any) error) error {
		var text string
		if err := scan(&text); err != nil || text == "" {
			return err
		}
		group, err = holdfast.ParseID(text)
		return err
	})
	return group, err
}

// raiseCursor makes AdvanceGroups search a sealed group from its new members down: its cursor may have passed their ids.
func (s *Store) raiseCursor(ctx context.Context, q session, group holdfast.ID, fresh []entry) error {
	var added []holdfast.ID
	for i := range fresh {
		if !group.IsZero() && fresh[i].Group == group {
			added = append(added, fresh[i].ID)
		}
	}
	if len(added) == 0 {
		return nil
	}
	return q.exec(ctx, s.sql["raise_group_cursor"], group.String(), ids(added))
}
