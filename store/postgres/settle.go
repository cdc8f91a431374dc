package postgres

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast"
)

// Settle ends leases. It takes two round trips: the first locks the batches and reads what stands in the way, the second
// writes what became of each job. All that is decided in between is decided here, under the locks.
func (s *Store) Settle(ctx context.Context, settlements []holdfast.Settlement) ([]error, error) {
	answers := make([]error, len(settlements))
	var batches []holdfast.ID
	seen := map[holdfast.ID]bool{}
	for i := range settlements {
		n := &settlements[i]
		if answers[i] = n.Check(); answers[i] != nil {
			continue
		}
		if !seen[n.Batch] {
			seen[n.Batch] = true
			batches = append(batches, n.Batch)
		}
	}
	if len(batches) == 0 {
		return answers, nil
	}
	checked, careful := answers, false
	var queues []string
	err := s.ask(ctx, "settle", true, func(ctx context.Context) error {
		queues, answers = nil, slices.Clone(checked)
		err := s.transact(ctx, s.work, func(p *pipe) error {
			t := &settling{s: s, p: p, settlements: settlements, answers: answers, careful: careful}
			if err := t.look(ctx, batches); err != nil {
				return err
			}
			t.decide()
			if err := t.weigh(ctx); err != nil {
				return err
			}
			t.write(&queues)
			return nil
		})
		if !careful && twice(err) {
			careful = true
			return errTwice
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	s.wake(queues, false)
	return answers, nil
}

// A span names one attempt.
type span struct {
	job   holdfast.ID
	token int
}

type seat struct {
	lease  *lease
	member *member
}

// A settling is one call of Settle under way.
type settling struct {
	s           *Store
	p           *pipe
	settlements []holdfast.Settlement
	answers     []error

	now     time.Time
	held    []*lease
	seats   map[span]seat
	cancels map[holdfast.ID]bool
	unique  map[holdfast.ID]bool    // holds a key; true when success keeps it
	ended   map[span]holdfast.State // what was said of an attempt in this call
	strays  []int

	careful  bool                     // a job of this call has an end already
	complete map[string]*completeRows // by worker: there is usually one
	finished finishedRows
	attempts attemptRows
	late     lateRows
	ready    narrow
	later    narrow
	due      column
	freed    []holdfast.ID
	honoured []holdfast.ID
}

// look locks the batches, and reads requests to cancel and unique keys after that.
func (t *settling) look(ctx context.Context, batches []holdfast.ID) error {
	t.cancels, t.unique, t.seats, t.ended = map[holdfast.ID]bool{}, map[holdfast.ID]bool{}, map[span]seat{}, map[span]holdfast.State{}
	t.complete = map[string]*completeRows{}
	t.s.queueLock(t.p, &t.held, t.s.sql["lease_lock"], ids(batches))
	t.p.one(t.s.sql["now"], nil, &t.now)
	var id [16]byte
	var done bool
	t.p.each(t.s.sql["cancel_in"], []any{ids(batches)}, []any{&id}, func() error { t.cancels[id] = true; return nil })
	t.p.each(t.s.sql["unique_held"], []any{ids(batches)}, []any{&id, &done}, func() error { t.unique[id] = done; return nil })
	if err := t.p.flush(ctx); err != nil {
		return err
	}
	for _, l := range t.held {
		for i := range l.members {
			t.seats[span{l.members[i].job, l.members[i].token}] = seat{l, &l.members[i]}
		}
	}
	return nil
}

// decide applies what is held, in order, and sets the rest aside.
func (t *settling) decide() {
	for i := range t.settlements {
		n := &t.settlements[i]
		if t.answers[i] != nil {
			continue
		}
		at := span{n.Job, n.Token}
		place, ok := t.seats[at]
		switch {
		case n.Token < 0 || n.Token > math.MaxInt32: // a token that nobody was ever given
			t.answers[i] = lost(n.Job)
		case ok && place.lease.id == n.Batch:
			t.apply(n, place)
			delete(t.seats, at)
		case t.ended[at] == n.To: // said before, in this very call
		default:
			t.strays = append(t.strays, i)
		}
	}
}

// apply ends one attempt of the holder.
func (t *settling) apply(n *holdfast.Settlement, at seat) {
	m, to, said := at.member, n.To, holdfast.State("")
	count := m.charge(n.Charge)
	if t.cancels[n.Job] {
		to, said = holdfast.Cancelled, n.To
		t.honoured = append(t.honoured, n.Job)
	}
	t.ended[span{n.Job, n.Token}] = n.To
	a := attempt{worker: at.lease.who(), started: t.began(n, at), to: to, said: said, charge: n.Charge, count: count,
		limit: max(0, min(n.Limit, math.MaxInt32)), failure: n.Failure, why: n.Why}
	if to == holdfast.Queued {
		a.due = t.now.Add(n.Delay)
	}
	if to != holdfast.Complete {
		t.attempts.add(m, a)
	}
	switch {
	case to == holdfast.Queued && a.due.Truncate(time.Microsecond).After(t.now):
		t.later.add(m)
		t.due.time(a.due)
	case to == holdfast.Queued:
		t.ready.add(m)
	default:
		t.end(n, at, to)
	}
}

// began is when an attempt started: as long ago as it took, by its worker's clock, but never before it was claimed.
func (t *settling) began(n *holdfast.Settlement, at seat) time.Time {
	began := t.now.Add(-n.Took)
	if n.Took > 0 && began.Before(at.lease.claimed) {
		return at.lease.claimed
	}
	return began
}

// charge adds to the count that an attempt is charged to, and answers with that count where it has a cap.
func (m *member) charge(c holdfast.Charge) int {
	switch c {
	case holdfast.ChargeFailure:
		m.failures++
		return m.failures
	case holdfast.ChargeCrash:
		m.crashes++
		return m.crashes
	case holdfast.ChargeInterrupt:
		m.interrupts++
	}
	return 0
}

// end finishes a job and frees its unique key.
func (t *settling) end(n *holdfast.Settlement, at seat, to holdfast.State) {
	e := ending{state: to, worker: at.lease.worker}
	if n.Took > 0 || at.member.started {
		e.started = t.began(n, at)
	}
	switch to {
	case holdfast.Complete:
		e.result = string(n.Result)
	case holdfast.Failed:
		e.failure = n.Failure
	}
	if to == holdfast.Complete && !t.careful {
		if t.complete[e.worker] == nil {
			t.complete[e.worker] = &completeRows{}
		}
		t.complete[e.worker].add(at.member, e)
	} else {
		t.finished.add(at.member, e)
	}
	if done, holds := t.unique[n.Job]; holds && !(done && to == holdfast.Complete) {
		t.freed = append(t.freed, n.Job)
	}
}

// weigh finds out about settlements that are not held: said before and obeyed, or late.
func (t *settling) weigh(ctx context.Context) error {
	if len(t.strays) == 0 {
		return nil
	}
	var index, job, token column
	for _, i := range t.strays {
		index.int(i)
		job.id(t.settlements[i].Job)
		token.int(t.settlements[i].Token)
	}
	for _, i := range t.strays {
		t.answers[i] = lost(t.settlements[i].Job)
	}
	t.p.Queue(t.s.sql["settled"], index.String(), job.String(), token.String()).Query(func(rows pgx.Rows) error {
		var i int
		var attempted, ended string
		var there bool
		_, err := pgx.ForEachRow(rows, []any{&i, &attempted, &ended, &there}, func() error {
			n := &t.settlements[i]
			if to := string(n.To); to == attempted || to == ended {
				t.answers[i] = nil
			} else if there {
				t.late.add(n)
			}
			return nil
		})
		return err
	})
	return t.p.flush(ctx)
}

func lost(job holdfast.ID) error {
	return &holdfast.Error{Kind: holdfast.ErrLeaseLost, Job: job,
		Message: fmt.Sprintf("job %v is in other hands by now: what was done is kept as evidence and changes nothing", job)}
}

// write queues everything that was decided. What settles without trouble costs two statements.
func (t *settling) write(queues *[]string) {
	p, sql, now := t.p, t.s.sql, stamp(t.now)
	for _, worker := range slices.Sorted(maps.Keys(t.complete)) {
		t.complete[worker].queue(p, sql["complete"], now, worker)
	}
	t.finished.queue(p, sql["finish"], now)
	t.attempts.queue(p, sql["attempt_add"], now)
	t.late.queue(p, sql["late_add"], now)
	if len(t.ready.job) > 0 {
		p.Queue(sql["ready_add"], append([]any{now}, t.ready.args()...)...)
		var queue string
		p.each(sql["queues_of"], []any{t.ready.job}, []any{&queue}, func() error { *queues = append(*queues, queue); return nil })
	}
	if len(t.later.job) > 0 {
		p.Queue(sql["later_add"], append([]any{t.due.String()}, t.later.args()...)...)
	}
	if len(t.honoured) > 0 {
		p.Queue(sql["cancel_drop"], ids(t.honoured))
	}
	if len(t.freed) > 0 {
		p.Queue(sql["unique_free"], ids(t.freed))
	}
	t.s.keepOnly(p, t.held, func(m *member) bool { return t.ended[span{m.job, m.token}] != "" })
}
