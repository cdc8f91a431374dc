package sqlite

import (
	"context"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// MissedDeadlines returns up to limit jobs whose next attempt did not start in time, and records it in their stories. Each
// missed deadline is reported once.
func (s *Store) MissedDeadlines(ctx context.Context, limit int) (jobs []holdfast.ID, err error) {
	if err := rule.Batch("missed deadlines", limit); err != nil {
		return nil, err
	}
	err = s.writer.write(ctx, func(t *tx) (err error) {
		jobs, err = findMissed(t, limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	return jobs, nil
}

// A deadline is the time by which the next attempt of a job has to start, with how the job waits now.
type deadline struct {
	at         int64
	job        holdfast.ID
	token      int
	waits      int // the token with which it waits; negative: it does not wait
	generation int
}

// maxDeadlinePages is how many pages of met deadlines one MissedDeadlines reads before it leaves the rest to the next.
const maxDeadlinePages = 20

// findMissed reads due deadlines, a page at a time, until it has found enough missed ones. A deadline was missed if the job
// still waits with the same token. Deadlines that were read are deleted.
func findMissed(t *tx, limit int) (jobs []holdfast.ID, err error) {
	for range maxDeadlinePages {
		var due []deadline
		err := t.rows("find_due_deadlines", []any{t.now, limit - len(jobs)}, func(st *sqlite.Stmt) error {
			due = append(due, deadline{st.ColumnInt64(0), columnID(st, 1), st.ColumnInt(2), st.ColumnInt(3), st.ColumnInt(4)})
			return nil
		})
		if err != nil || len(due) == 0 {
			return jobs, err
		}
		for _, p := range due {
			if p.waits != p.token {
				continue
			}
			why := "its next attempt did not start by " + instant(p.at).Format(time.RFC3339)
			if err := t.addJobEvent(store.Intervention{Job: p.job, Actor: rule.Machine, Reason: why}, "deadline missed", p.token, p.generation); err != nil {
				return nil, err
			}
			jobs = append(jobs, p.job)
		}
		last := due[len(due)-1]
		if _, err := t.exec("delete_deadlines", last.at, last.job); err != nil {
			return nil, err
		}
		if len(jobs) >= limit {
			break
		}
	}
	return jobs, nil
}
