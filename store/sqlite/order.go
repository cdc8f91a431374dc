package sqlite

import (
	"context"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// An orderLine is the jobs of one owner with one order key. Its first job is queued, processing, or a dead letter that holds the line; the others wait.
type orderLine struct{ owner, key string }

// leaveLine removes a job that has ended from its line, and starts the next one, unless the job is a dead letter that holds the line. It does nothing for a job
// without an order key.
func leaveLine(e executor, now int64, job holdfast.ID, deadLetter bool) error {
	var l orderLine
	var hold, live bool
	found, err := e.one("order_find", []any{job}, &l.owner, &l.key, &hold, &live)
	if err != nil || !found || !live {
		return err
	}
	if hold && deadLetter {
		_, err := e.exec("order_hold", job, true)
		return err
	}
	if _, err := e.exec("order_leave", job); err != nil {
		return err
	}
	_, err = l.advance(e, now)
	return err
}

// joinLine puts a new job, which waits, at the end of its line.
func (e *enqueuer) joinLine(d *holdfast.Draft) error {
	if _, err := e.exec("order_add", d.ID, d.Owner, d.Order, d.OrderHold); err != nil {
		return err
	}
	_, err := orderLine{d.Owner, d.Order}.advance(e, e.now)
	return err
}

// restart makes a job claimable in a new generation, with counters at zero. A job with an order key that had left its line goes to the end of it, and starts when it
// is the first.
func (t *tx) restart(job holdfast.ID, token, generation int) error {
	var l orderLine
	ordered, err := t.one("order_find", []any{job}, &l.owner, &l.key, new(bool), new(bool))
	if err != nil {
		return err
	}
	if !ordered {
		_, err := t.exec("return_to_ready", job, token, 0, 0, 0, generation, t.now)
		return err
	}
	if _, err := t.exec("order_return", job); err != nil {
		return err
	}
	if _, err := t.exec("order_hold", job, false); err != nil {
		return err
	}
	if _, err := t.exec("wait_for_members", t.now, job, token, generation); err != nil {
		return err
	}
	_, err = l.advance(unbatched{t}, t.now)
	return err
}

// advance starts the first job of a line if it waits, and reports whether it did. Jobs that have ended or are gone leave the line before.
func (l orderLine) advance(e executor, now int64) (moved bool, err error) {
	for {
		var job holdfast.ID
		var waits, ended bool
		found, err := e.one("order_head", []any{l.owner, l.key}, &job, &waits, &ended)
		if err != nil || !found || !ended && !waits {
			return moved, err
		}
		moved = true
		if !ended {
			return true, e.startWaiting(now, job)
		}
		if _, err := e.exec("order_leave", job); err != nil {
			return true, err
		}
	}
}

// startWaiting starts the first job of a line once its own time has come.
func (t *tx) startWaiting(_ int64, id holdfast.ID) error {
	job, err := t.findJob(store.Intervention{Job: id})
	if err != nil || !job.waiting {
		return err
	}
	return t.startFollower(job)
}

func (f *callerTx) startWaiting(now int64, job holdfast.ID) error {
	var token, failures, crashes, releases, generation int
	var due, created int64
	if _, err := f.one("find_waiting", []any{job}, &token, &failures, &crashes, &releases, &generation, &due, &created); err != nil {
		return err
	}
	if due > now && due != created {
		_, err := f.exec("clear_group_wait", job)
		return err
	}
	if _, err := f.exec("delete_later", job); err != nil {
		return err
	}
	_, err := f.exec("return_to_ready", job, token, failures, crashes, releases, generation, dueUnlessCreated(due, created))
	return err
}

// sweepLines moves on lines whose first job has ended without the program that ended it moving them: a program of an older release, or a purge. It looks at up to
// limit lines, and continues after them the next time.
func (s *Store) sweepLines(ctx context.Context, limit int) (moved int, err error) {
	var stuck []orderLine
	from := s.lineCursor
	err = s.reader.with(ctx, func(beside *session) error {
		for range limit {
			next := orderLine{}
			found, err := beside.one("order_next_line", []any{from.owner, from.key}, &next.owner, &next.key)
			if err != nil {
				return err
			}
			if from = next; !found {
				return nil
			}
			var waits, ended bool
			if _, err := beside.one("order_head", []any{next.owner, next.key}, new(holdfast.ID), &waits, &ended); err != nil {
				return err
			}
			if waits || ended {
				stuck = append(stuck, next)
			}
		}
		return nil
	})
	if err == nil && len(stuck) > 0 {
		err = s.writer.write(ctx, func(t *tx) error {
			moved = 0
			for _, l := range stuck {
				did, err := l.advance(unbatched{t}, t.now)
				if err != nil {
					return err
				}
				if did {
					moved++
				}
			}
			return nil
		})
	}
	if err == nil {
		s.lineCursor = from
	}
	return moved, explain(err)
}
