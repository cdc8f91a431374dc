package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
)

// The first job of a line (the jobs of one owner with one order key) is queued, processing, or a dead letter that holds the line; the others wait. An enqueue locks
// its lines until it commits. Operations that end a job only try the lock, because they hold locks that others wait for: a line that is locked then is moved on by
// sweepLines.

// startedLines collects where jobs became claimable, those that are first in their lines included.
type startedLines struct {
	readyPlaces
	jobs []holdfast.ID // that were first in their lines
}

// announceLines is announce for jobs that were first in their lines too.
func (s *Store) announceLines(l *startedLines) {
	if len(l.jobs) > 0 {
		s.planner.noteJobs(l.jobs...)
	}
	s.announce(&l.readyPlaces)
}

// advanceLines queues the statement that starts the first jobs of the lines of these jobs.
func (s *Store) advanceLines(p *pipeline, jobs []holdfast.ID, to *startedLines) {
	var queue, job string
	var at place
	p.queueRows(s.sql["order_advance"], []any{ids(jobs)}, []any{&queue, &at.lane, &at.priority, &job}, func() error {
		to.add(queue, at)
		id, err := holdfast.ParseID(job)
		to.jobs = append(to.jobs, id)
		return err
	})
}

// leaveLines queues the statements that remove ended jobs from their lines and start the next ones.
func (s *Store) leaveLines(p *pipeline, jobs []holdfast.ID, to *startedLines) {
	p.Queue(s.sql["order_leave"], ids(jobs))
	s.advanceLines(p, jobs, to)
}

// returnToLines queues the statements that begin new generations of jobs with order keys: those that had left their lines go to the ends of them, and start when
// they are the first.
func (s *Store) returnToLines(p *pipeline, rows *moveRows, now time.Time, to *startedLines) {
	p.Queue(s.sql["order_return"], rows.job)
	p.Queue(s.sql["edit_later"], append([]any{timestamp(now), true}, rows.args()...)...)
	s.advanceLines(p, rows.job, to)
}

// joinLines puts new jobs, which wait, at the ends of their lines, and starts those that are the first.
func (s *Store) joinLines(ctx context.Context, q session, fresh []entry) error {
	var job, owner, key, hold column
	for i := range fresh {
		if e := &fresh[i]; e.Order != "" {
			job.id(e.ID)
			owner.quote(e.Owner)
			key.quote(e.Order)
			hold.bool(e.OrderHold)
		}
	}
	if len(job.text) == 0 {
		return nil
	}
	if err := q.query(ctx, s.sql["order_lock"], []any{owner.String(), key.String()}, func(func(...any) error) error { return nil }); err != nil {
		return err
	}
	if err := q.exec(ctx, s.sql["order_add"], job.String(), owner.String(), key.String(), hold.String()); err != nil {
		return err
	}
	return q.query(ctx, s.sql["order_advance"], []any{job.String()}, func(func(...any) error) error { return nil })
}

// advanceLinesIn starts the first jobs of the lines of these jobs in a transaction of the caller, and tells workers when it commits.
func (s *Store) advanceLinesIn(ctx context.Context, q session, jobs []holdfast.ID) error {
	var list column
	for _, job := range jobs {
		list.id(job)
	}
	var queues []string
	err := q.query(ctx, s.sql["order_advance"], []any{list.String()}, func(scan func(...any) error) error {
		var queue, job string
		var at place
		err := scan(&queue, &at.lane, &at.priority, &job)
		queues = append(queues, queue)
		return err
	})
	for _, queue := range queues {
		if err == nil {
			err = q.query(ctx, s.sql["notify"], []any{callerTxWake + " " + queue}, func(func(...any) error) error { return nil })
		}
	}
	return err
}

// A lineCursor is the line after which the next step of sweepLines begins.
type lineCursor struct {
	mu         sync.Mutex
	owner, key string
}

// sweepLines moves on lines whose first job has ended without a program moving them: a program of an older release, a purge, or an operation that met a lock. It
// looks at up to limit lines, and continues after them the next time.
func (s *Store) sweepLines(ctx context.Context, limit int) (moved int, err error) {
	s.sweep.mu.Lock()
	defer s.sweep.mu.Unlock()
	var stuck []holdfast.ID
	var owner, key string
	err = s.withRetries(ctx, "advance groups", true, func(ctx context.Context) error {
		stuck, owner, key = nil, "", ""
		return s.work.query(ctx, s.sql["order_find_stuck"], []any{s.sweep.owner, s.sweep.key, limit}, func(scan func(...any) error) error {
			var o, k, job string
			var is bool
			var n int
			if err := scan(&o, &k, &job, &is, &n); err != nil {
				return err
			}
			if n == limit {
				owner, key = o, k
			}
			if !is {
				return nil
			}
			id, err := holdfast.ParseID(job)
			stuck = append(stuck, id)
			return err
		})
	})
	if err != nil {
		return 0, err
	}
	s.sweep.owner, s.sweep.key = owner, key
	if len(stuck) == 0 {
		return 0, nil
	}
	var to startedLines
	err = s.withRetries(ctx, "advance groups", true, func(ctx context.Context) error {
		to = startedLines{}
		return s.transact(ctx, s.work, func(p *pipeline) error { s.advanceLines(p, stuck, &to); return nil })
	})
	if err != nil {
		return 0, err
	}
	s.announceLines(&to)
	return len(to.jobs), nil
}
