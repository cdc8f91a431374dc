package postgres

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/rule"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// Settle ends leases. It takes two round trips: the first locks the batches and reads what stands in the way, the second
// writes what became of each job; a hundred rows of a sort and more take another for their copy. All that is decided in
// between is decided here, under the locks.
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
	var to returned
	var back []holdfast.ID
	err := s.ask(ctx, "settle", true, func(ctx context.Context) error {
		to, back, answers = returned{}, nil, slices.Clone(checked)
		t := &settling{s: s, settlements: settlements, answers: answers, careful: careful}
		defer t.leave()
		err := s.transact(ctx, s.work, func(p *pipe) error {
			t.p = p
			if err := t.look(ctx, batches); err != nil {
				return err
			}
			t.decide()
			if err := t.weigh(ctx); err != nil {
				return err
			}
			back = t.ready.job
			return t.write(ctx, &to)
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
	s.marks.lower(back...)
	s.announce(&to)
	return answers, nil
}

// A seat is a member of a lease that is held.
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
	cancels map[holdfast.ID]bool
	unique  map[holdfast.ID]bool // holds a key; true when success keeps it
	strays  []int

	careful  bool // a job of this call has an end already
	finished finishedRows
	attempts attemptRows
	folds    folds
	late     lateRows
	ready    narrow
	later    narrow
	due      column
	freed    []holdfast.ID
	honoured []holdfast.ID
	promises promises
	troubles troubles
	turnable bool // a failure of this call belongs to an error group that it may turn
	tallies  sqltext.Tallies
	counts   bool // in this shard
	shard    int
}

// look locks the batches, and reads requests to cancel and unique keys after that.
func (t *settling) look(ctx context.Context, batches []holdfast.ID) error {
	t.cancels, t.unique = map[holdfast.ID]bool{}, map[holdfast.ID]bool{}
	t.s.queueLock(t.p, &t.held, t.s.sql["lease_lock"], ids(batches))
	t.p.one(t.s.sql["now"], nil, &t.now)
	var id [16]byte
	var done bool
	t.p.each(t.s.sql["find_cancels_in_batches"], []any{ids(batches)}, []any{&id}, func() error { t.cancels[id] = true; return nil })
	t.p.each(t.s.sql["find_unique_in_batches"], []any{ids(batches)}, []any{&id, &done}, func() error { t.unique[id] = done; return nil })
	if failed := t.fingerprints(); failed != "" {
		t.p.one(t.s.sql["check_error_status"], []any{failed}, &t.turnable)
	}
	return t.p.flush(ctx)
}

// fingerprints are those of the failures of the call, as far as its settlements pass their check.
func (t *settling) fingerprints() string {
	var all column
	for i := range t.settlements {
		if f := t.settlements[i].Failure; f != nil && f.Fingerprint != "" && t.answers[i] == nil {
			all.quote(clean(f.Fingerprint))
		}
	}
	if len(all.text) == 0 {
		return ""
	}
	return all.String()
}

// decide applies what is held, in order, and sets the rest aside.
func (t *settling) decide() {
	for i := range t.settlements {
		n := &t.settlements[i]
		if t.answers[i] != nil {
			continue
		}
		at, ok := t.seat(n)
		switch {
		case n.Token < 0 || n.Token > math.MaxInt32: // a token that nobody was ever given
			t.answers[i] = rule.LeaseLost(n.Job)
		case ok && at.member.said == "":
			t.apply(n, at)
		case ok && at.member.said == n.To: // said before, in this very call
		default:
			t.strays = append(t.strays, i)
		}
	}
}

// seat finds the member that a settlement is about.
func (t *settling) seat(n *holdfast.Settlement) (seat, bool) {
	for _, l := range t.held {
		if l.id == n.Batch {
			m := l.next(n.Job)
			return seat{l, m}, m != nil && m.token == n.Token
		}
	}
	return seat{}, false
}

// apply ends one attempt of the holder.
func (t *settling) apply(n *holdfast.Settlement, at seat) {
	m, to, said := at.member, n.To, holdfast.State("")
	count := m.charge(n.Charge)
	if t.cancels[n.Job] {
		to, said = holdfast.Cancelled, n.To
		t.honoured = append(t.honoured, n.Job)
	}
	m.said = n.To
	a := attempt{worker: at.lease.who(), started: t.began(n, at), to: to, said: said, charge: n.Charge, count: count,
		limit: n.Limit, failure: n.Failure, why: n.Why}
	if to == holdfast.Queued {
		a.due = t.now.Add(n.Delay)
		t.promises.add(n, t.now)
	}
	t.troubles.add(n, to)
	t.tallies.Add(n, to)
	if to != holdfast.Complete {
		t.attempts.add(m, a)
		t.folds.add(n, m, to)
	}
	switch {
	case to == holdfast.Queued && a.due.Truncate(time.Microsecond).After(t.now):
		t.later.add(m)
		t.due.micros(a.due)
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
	t.finished.add(at.member, e)
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
		t.answers[i] = rule.LeaseLost(t.settlements[i].Job)
	}
	t.p.Queue(t.s.sql["find_settled"], index.String(), job.String(), token.String()).Query(func(rows pgx.Rows) error {
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

// write writes everything that was decided: many rows of a sort at once, the rest in the round trip of the commit.
func (t *settling) write(ctx context.Context, back *returned) error {
	p, sql, how := t.p, t.s.sql, ""
	if t.careful {
		how = " gently"
	}
	if len(t.finished) < bulk || t.careful {
		t.finished.queue(p, sql["finish"+how], t.now)
	} else if err := t.finished.copy(ctx, p, t.now); err != nil {
		return err
	}
	if len(t.attempts) < bulk || t.careful {
		t.attempts.queue(p, sql["attempt_add"+how], t.now)
	} else if err := t.attempts.copy(ctx, p, t.now); err != nil {
		return err
	}
	t.folds.queue(p, sql["merge_releases"])
	t.late.queue(p, sql["late_add"], t.now)
	if len(t.ready.job) > 0 {
		t.ready.queue(p, sql["ready_add"+how], stamp(t.now), back)
	}
	if len(t.later.job) > 0 {
		p.Queue(sql["later_add"+how], append([]any{t.due.String()}, t.later.args()...)...)
	}
	if len(t.honoured) > 0 {
		p.Queue(sql["cancel_drop"], ids(t.honoured))
	}
	if len(t.freed) > 0 {
		p.Queue(sql["unique_free"], ids(t.freed))
	}
	t.s.keepOnly(p, t.held, func(m *member) bool { return m.said != "" })
	t.promises.queue(p, sql)
	if err := t.writeTroubles(ctx); err != nil {
		return err
	}
	t.tally()
	return nil
}
