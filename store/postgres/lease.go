package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast"
)

// A batchRow is a row of holdfast_batch: the jobs of one batch and the lease they share. It is read under the row's lock.
type batchRow struct {
	id           holdfast.ID
	worker, lost string // lost: the worker from which the batch was reclaimed
	claimed      time.Time
	expires      time.Time
	members      []member
	cursor       int // where next starts to search
}

// A member is a job in a batch, with its counters.
type member struct {
	job                                            holdfast.ID
	token, failures, crashes, releases, generation int
	started                                        bool
	settledTo                                      holdfast.State // set once a settlement of the current call was applied
}

// attemptWorker returns the worker that ran the attempt: the lost one in a batch that was reclaimed.
func (l *batchRow) attemptWorker() string {
	if l.lost != "" {
		return l.lost
	}
	return l.worker
}

// lockBatches locks batches in the order of their ids and reads them, with the time after the last lock was granted. Batches that no longer exist are
// missing from the answer.
func (d *database) lockBatches(ctx context.Context, p *pipeline, batches []holdfast.ID) (held []*batchRow, now time.Time, err error) {
	d.queueLockBatches(p, &held, d.sql["batch_lock"], ids(batches))
	p.queueRow(d.sql["now"], nil, &now)
	err = p.flush(ctx)
	return held, now, err
}

// queueLockBatches queues a statement that returns batch rows.
func (d *database) queueLockBatches(p *pipeline, into *[]*batchRow, sql string, args ...any) {
	p.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			l, err := scanBatch(rows)
			if err != nil {
				return err
			}
			*into = append(*into, l)
		}
		return rows.Err()
	})
}

// scanBatch reads one row. Counter arrays are NULL where all members have their initial values.
func scanBatch(rows pgx.Rows) (*batchRow, error) {
	var l batchRow
	var jobs [][16]byte
	var tokens, failures, crashes, releases, generations []int32
	var started []bool
	err := rows.Scan((*[16]byte)(&l.id), &l.worker, &l.lost, &l.claimed, &l.expires, &jobs, &tokens, &failures, &crashes, &releases, &generations, &started)
	if err != nil {
		return nil, err
	}
	l.members = make([]member, len(jobs))
	at := func(counts []int32, i, none int) int { // a check constraint keeps the arrays aligned
		if counts == nil {
			return none
		}
		return int(counts[i])
	}
	for i := range jobs {
		l.members[i] = member{jobs[i], at(tokens, i, 1), at(failures, i, 0), at(crashes, i, 0), at(releases, i, 0), at(generations, i, 1), started[i], ""}
	}
	return &l, nil
}

// find returns the member of a job, or nil.
func (l *batchRow) find(job holdfast.ID) *member {
	l.cursor = 0
	return l.next(job)
}

// next is find with a search that starts after the last member found: jobs end roughly in the order in which they were claimed.
func (l *batchRow) next(job holdfast.ID) *member {
	for range l.members {
		if l.cursor >= len(l.members) {
			l.cursor = 0
		}
		m := &l.members[l.cursor]
		l.cursor++
		if m.job == job {
			return m
		}
	}
	return nil
}

// moveRows are jobs that move to another table, with their counters. The members must not change until the statement is queued.
type moveRows struct {
	job        ids
	members    []*member
	hasHistory bool // a counter of some member differs from its initial value
}

// add adds a member.
func (n *moveRows) add(m *member) {
	n.job = append(n.job, m.job)
	n.members = append(n.members, m)
	n.hasHistory = n.hasHistory || m.token > 1 || m.generation > 1 // generation: a job that was cancelled while it waited has token 0 and may be retried
}

// argsOrNulls returns the parameters with NULL counters if no member has any history. Only statements that write batch rows understand that.
func (n *moveRows) argsOrNulls() []any {
	if n.hasHistory {
		return n.args()
	}
	var none []int32
	return []any{n.job, none, none, none, none, none}
}

// queue queues a statement that makes the jobs claimable, and adds the places in which they wait then.
func (n *moveRows) queue(p *pipeline, sql, now string, to *readyPlaces) {
	var queue string
	var at place
	p.queueRows(sql, append([]any{now}, n.args()...), []any{&queue, &at.lane, &at.priority}, func() error { to.add(queue, at); return nil })
}

// A readyPlaces collects where jobs became claimable.
type readyPlaces struct {
	queues []string
	places []place
}

func (r *readyPlaces) add(queue string, at place) {
	if !slices.Contains(r.queues, queue) {
		r.queues = append(r.queues, queue)
	}
	r.places = append(r.places, at)
}

// announce tells the planner where jobs became claimable, and wakes workers of their queues.
func (s *Store) announce(r *readyPlaces) {
	if len(r.places) > 0 {
		s.planner.notePlaces(r.places)
	}
	s.hub.wake(r.queues, false)
}

func (n *moveRows) args() []any {
	count := func(of func(*member) int) []int32 {
		list := make([]int32, len(n.members))
		for i, m := range n.members {
			list[i] = int32(of(m))
		}
		return list
	}
	return []any{
		n.job, count(func(m *member) int { return m.token }), count(func(m *member) int { return m.failures }),
		count(func(m *member) int { return m.crashes }), count(func(m *member) int { return m.releases }),
		count(func(m *member) int { return m.generation }),
	}
}

// memberArgs returns the array parameters of a batch row.
func memberArgs(members []member) []any {
	var n moveRows
	var started column
	for i := range members {
		n.add(&members[i])
		started.bool(members[i].started)
	}
	return append(n.argsOrNulls(), started.String())
}

// removeMembers queues the statements that remove members from locked batches: an update, or a delete if none is left.
func (d *database) removeMembers(p *pipeline, held []*batchRow, leaves func(*member) bool) {
	var empty []holdfast.ID
	for _, l := range held {
		var left []member
		for i := range l.members {
			if !leaves(&l.members[i]) {
				left = append(left, l.members[i])
			}
		}
		switch len(left) {
		case 0:
			empty = append(empty, l.id)
		case len(l.members):
		default:
			p.Queue(d.sql["batch_shrink"], append([]any{l.id.String()}, memberArgs(left)...)...)
		}
	}
	if len(empty) > 0 {
		p.Queue(d.sql["batch_drop"], ids(empty))
	}
}
