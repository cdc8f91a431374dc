package sqlite

import (
	"context"
	"errors"

	"zombiezen.com/go/sqlite"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// reopenGroups reopens the group of a job that begins a new generation: a settled group is processing again in its next
// generation, and so are the groups around it. The group's cursor is reset, because a member that it has passed is live
// again.
func (t *tx) reopenGroups(i store.Intervention, group holdfast.ID) error {
	for !group.IsZero() {
		g, found, err := t.group(group)
		if err != nil || !found {
			return err
		}
		if _, err := t.exec("reset_group_cursor", group); err != nil {
			return err
		}
		if !g.State.Settled() {
			return nil
		}
		if _, err := t.exec("group_reopen", group); err != nil {
			return err
		}
		if err := t.addGroupEvent(i, group, "reopened", g.Generation+1); err != nil {
			return err
		}
		group = g.Parent
	}
	return nil
}

// RetryGroup retries the members of a group that failed, and those that were cancelled because of them.
func (s *Store) RetryGroup(ctx context.Context, i store.Intervention) (retried int, err error) {
	if err := i.Check(); err != nil {
		return 0, err
	}
	err = s.writer.write(ctx, func(t *tx) (err error) {
		if _, err := t.findGroup(i); err != nil {
			return err
		}
		retried, err = t.retryGroup(i)
		return err
	})
	if err != nil {
		return 0, err
	}
	return retried, nil
}

// retryGroup retries the members of a group and of the groups inside it. A member that cannot be retried (it has
// expired, or another job has its unique key) stays failed.
func (t *tx) retryGroup(i store.Intervention) (retried int, err error) {
	var expired, keyed int
	for groups := []holdfast.ID{i.Group}; len(groups) > 0; groups = groups[1:] {
		members, err := t.findRetryable(groups[0])
		if err != nil {
			return 0, err
		}
		before := retried
		for _, m := range members {
			late, err := t.retryMember(i, m.Job, m.Waits())
			switch refusal := (*holdfast.Error)(nil); {
			case late:
				expired++
			case errors.As(err, &refusal):
				keyed++
			case err != nil:
				return 0, err
			default:
				retried++
			}
		}
		if retried > before {
			if _, err := t.exec("flag_group", groups[0]); err != nil {
				return 0, err
			}
		}
		if groups, err = t.appendIDs(groups, "find_child_groups", groups[0]); err != nil {
			return 0, err
		}
	}
	if retried == 0 {
		return 0, rule.NothingToRetry(i.Group, expired, keyed)
	}
	g, _, err := t.group(i.Group)
	if err == nil {
		err = t.addGroupEvent(i, i.Group, "manual retry", g.Generation)
	}
	return retried, err
}

// findRetryable returns the members of a group that failed, and those that never ran because of another that is retried.
func (t *tx) findRetryable(group holdfast.ID) (members []rule.Retryable, err error) {
	err = t.rows("find_failed_members", []any{group}, func(st *sqlite.Stmt) error {
		members = append(members, rule.Retryable{Job: columnID(st, 0), Cause: columnID(st, 1), Skipped: st.ColumnInt(2) != 0, Conditional: st.ColumnInt(3) != 0})
		return nil
	})
	retried, n := rule.Retried(members), 0
	for i := range members {
		if retried[i] {
			members[n] = members[i]
			n++
		}
	}
	return members[:n], err
}

// retryMember begins the next generation of a member: at once, or when the members for which it waits have ended. A refusal comes before the first row is written. late is true if the member
// has expired.
func (t *tx) retryMember(of store.Intervention, id holdfast.ID, waits bool) (late bool, err error) {
	i := store.Intervention{Job: id, Actor: of.Actor, Reason: of.Reason, Request: of.Request}
	job, err := t.findJob(i)
	if err != nil {
		return false, err
	}
	if err := rule.InTime(job.rule(), instant(t.now)); err != nil {
		return true, err
	}
	if err := t.reopenJob(i, &job); err != nil {
		return false, err
	}
	if !waits {
		return false, t.beginGeneration(i, job, "manual retry", rule.Revision{Reason: i.Reason})
	}
	if _, err := t.exec("return_to_waiting", t.now, id, job.token, job.generation+1); err != nil {
		return false, err
	}
	if _, err := t.exec("set_generation_start", id, t.now); err != nil {
		return false, err
	}
	if err := t.reopenGroups(i, job.group); err != nil {
		return false, err
	}
	return false, t.addJobEvent(i, "manual retry", job.token, job.generation+1)
}

// appendIDs appends the ids that a statement returns.
func (s *session) appendIDs(to []holdfast.ID, name string, args ...any) ([]holdfast.ID, error) {
	err := s.rows(name, args, func(st *sqlite.Stmt) error {
		to = append(to, columnID(st, 0))
		return nil
	})
	return to, err
}
