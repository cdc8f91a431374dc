package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast"
)

// A lease is one batch, read under its row's lock.
type lease struct {
	id           holdfast.ID
	worker, lost string
	claimed      time.Time
	expires      time.Time
	members      []member
}

// A member is a job in a batch, with the counters that travel with it.
type member struct {
	job                                              holdfast.ID
	token, failures, crashes, interrupts, generation int
	started                                          bool
}

// who is the worker in whose hands the attempt was.
func (l *lease) who() string {
	if l.lost != "" {
		return l.lost
	}
	return l.worker
}

// lock locks batches in their order and reads them, with the time after the last lock was had. Batches that are no more are
// missing from the answer.
func (s *Store) lock(ctx context.Context, p *pipe, batches []holdfast.ID) (held []*lease, now time.Time, err error) {
	s.queueLock(p, &held, s.sql["lease_lock"], ids(batches))
	p.one(s.sql["now"], nil, &now)
	err = p.flush(ctx)
	return held, now, err
}

// queueLock queues a statement that answers with whole leases.
func (s *Store) queueLock(p *pipe, into *[]*lease, sql string, args ...any) {
	p.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			l, err := scanLease(rows)
			if err != nil {
				return err
			}
			*into = append(*into, l)
		}
		return rows.Err()
	})
}

func scanLease(rows pgx.Rows) (*lease, error) {
	var l lease
	var jobs [][16]byte
	var tokens, failures, crashes, interrupts, generations []int32
	var started []bool
	err := rows.Scan((*[16]byte)(&l.id), &l.worker, &l.lost, &l.claimed, &l.expires, &jobs, &tokens, &failures, &crashes, &interrupts, &generations, &started)
	if err != nil {
		return nil, err
	}
	l.members = make([]member, len(jobs))
	for i := range jobs { // the table's constraint keeps the arrays aligned
		l.members[i] = member{jobs[i], int(tokens[i]), 0, 0, 0, 1, started[i]}
		if failures != nil {
			l.members[i] = member{jobs[i], int(tokens[i]), int(failures[i]), int(crashes[i]), int(interrupts[i]), int(generations[i]), started[i]}
		}
	}
	return &l, nil
}

// find is the member that a job is, or nil.
func (l *lease) find(job holdfast.ID) *member {
	for i := range l.members {
		if l.members[i].job == job {
			return &l.members[i]
		}
	}
	return nil
}

// narrow are the columns that travel with a job from place to place.
type narrow struct {
	job                                              ids
	token, failures, crashes, interrupts, generation []int32
	tried                                            bool // something has befallen one of them
}

func (n *narrow) add(m *member) {
	n.job = append(n.job, m.job)
	n.token = append(n.token, int32(m.token))
	n.failures = append(n.failures, int32(m.failures))
	n.crashes = append(n.crashes, int32(m.crashes))
	n.interrupts = append(n.interrupts, int32(m.interrupts))
	n.generation = append(n.generation, int32(m.generation))
	n.tried = n.tried || m.failures+m.crashes+m.interrupts > 0 || m.generation > 1
}

// brief are the same columns for statements that know what null means: nothing has befallen any of them.
func (n *narrow) brief() []any {
	if n.tried {
		return n.args()
	}
	var none []int32
	return []any{n.job, n.token, none, none, none, none}
}

func (n *narrow) args() []any {
	return []any{n.job, n.token, n.failures, n.crashes, n.interrupts, n.generation}
}

// arrays are the aligned parameters of a lease's members.
func arrays(members []member) []any {
	var n narrow
	var started column
	for i := range members {
		n.add(&members[i])
		started.bool(members[i].started)
	}
	return append(n.brief(), started.String())
}

// keepOnly queues what makes the rows of locked leases match what is left in them.
func (s *Store) keepOnly(p *pipe, held []*lease, leaves func(*member) bool) {
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
			p.Queue(s.sql["lease_shrink"], append([]any{l.id.String()}, arrays(left)...)...)
		}
	}
	if len(empty) > 0 {
		p.Queue(s.sql["lease_drop"], ids(empty))
	}
}
