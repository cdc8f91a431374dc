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
	checked, tolerant := answers, false
	var to readyPlaces
	var back []holdfast.ID
	err := s.withRetries(ctx, "settle", true, func(ctx context.Context) error {
		to, back, answers = readyPlaces{}, nil, slices.Clone(checked)
		t := &settleCall{s: s, settlements: settlements, answers: answers, tolerant: tolerant}
		defer t.releaseShard()
		err := s.transact(ctx, s.work, func(p *pipeline) error {
			t.p = p
			if err := t.lockAndRead(ctx, batches); err != nil {
				return err
			}
			t.decide()
			if err := t.checkNotHeld(ctx); err != nil {
				return err
			}
			back = t.ready.job
			return t.write(ctx, &to)
		})
		if !tolerant && isDuplicate(err) {
			tolerant = true
			return errAlreadyFinished
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
type heldMember struct {
	lease  *batchRow
	member *member
}

// A settling is one call of Settle under way.
type settleCall struct {
	s           *Store
	p           *pipeline
	settlements []holdfast.Settlement
	answers     []error

	now     time.Time
	held    []*batchRow
	cancels map[holdfast.ID]bool
	unique  map[holdfast.ID]bool // holds a key; true when success keeps it
	notHeld []int

	tolerant        bool // a job of this call has an end already
	finished        finishedRows
	attempts        attemptRows
	merges          releaseMerges
	late            lateRows
	ready           moveRows
	later           moveRows
	due             column
	freedKeys       []holdfast.ID
	cancelledJobs   []holdfast.ID
	deadlines       startDeadlines
	errorGroups     errorGroupCounts
	mayChangeStatus bool // a failure of this call belongs to an error group that it may turn
	tallies         sqltext.Tallies
	hasShard        bool // in this shard
	shard           int
}

// look locks the batches, and reads requests to cancel and unique keys after that.
func (t *settleCall) lockAndRead(ctx context.Context, batches []holdfast.ID) error {
	t.cancels, t.unique = map[holdfast.ID]bool{}, map[holdfast.ID]bool{}
	t.s.queueLockBatches(t.p, &t.held, t.s.sql["lease_lock"], ids(batches))
	t.p.queueRow(t.s.sql["now"], nil, &t.now)
	var id [16]byte
	var done bool
	t.p.queueRows(t.s.sql["find_cancels_in_batches"], []any{ids(batches)}, []any{&id}, func() error { t.cancels[id] = true; return nil })
	t.p.queueRows(t.s.sql["find_unique_in_batches"], []any{ids(batches)}, []any{&id, &done}, func() error { t.unique[id] = done; return nil })
	if failed := t.fingerprints(); failed != "" {
		t.p.queueRow(t.s.sql["check_error_status"], []any{failed}, &t.mayChangeStatus)
	}
	return t.p.flush(ctx)
}

// fingerprints are those of the failures of the call, as far as its settlements pass their check.
func (t *settleCall) fingerprints() string {
	var all column
	for i := range t.settlements {
		if f := t.settlements[i].Failure; f != nil && f.Fingerprint != "" && t.answers[i] == nil {
			all.quote(cleanText(f.Fingerprint))
		}
	}
	if len(all.text) == 0 {
		return ""
	}
	return all.String()
}

// decide applies what is held, in order, and sets the rest aside.
func (t *settleCall) decide() {
	for i := range t.settlements {
		n := &t.settlements[i]
		if t.answers[i] != nil {
			continue
		}
		at, ok := t.findMember(n)
		switch {
		case n.Token < 0 || n.Token > math.MaxInt32: // a token that nobody was ever given
			t.answers[i] = rule.LeaseLost(n.Job)
		case ok && at.member.settledTo == "":
			t.apply(n, at)
		case ok && at.member.settledTo == n.To: // said before, in this very call
		default:
			t.notHeld = append(t.notHeld, i)
		}
	}
}

// seat finds the member that a settlement is about.
func (t *settleCall) findMember(n *holdfast.Settlement) (heldMember, bool) {
	for _, l := range t.held {
		if l.id == n.Batch {
			m := l.next(n.Job)
			return heldMember{l, m}, m != nil && m.token == n.Token
		}
	}
	return heldMember{}, false
}

// apply ends one attempt of the holder.
func (t *settleCall) apply(n *holdfast.Settlement, at heldMember) {
	m, to, said := at.member, n.To, holdfast.State("")
	count := m.charge(n.Charge)
	if t.cancels[n.Job] {
		to, said = holdfast.Cancelled, n.To
		t.cancelledJobs = append(t.cancelledJobs, n.Job)
	}
	m.settledTo = n.To
	a := attempt{worker: at.lease.attemptWorker(), started: t.startedAt(n, at), to: to, said: said, charge: n.Charge, count: count,
		limit: n.Limit, failure: n.Failure, why: n.Why}
	if to == holdfast.Queued {
		a.due = t.now.Add(n.Delay)
		t.deadlines.add(n, t.now)
	}
	t.errorGroups.add(n, to)
	t.tallies.Add(n, to)
	if to != holdfast.Complete {
		t.attempts.add(m, a)
		t.merges.add(n, m, to)
	}
	switch {
	case to == holdfast.Queued && a.due.Truncate(time.Microsecond).After(t.now):
		t.later.add(m)
		t.due.micros(a.due)
	case to == holdfast.Queued:
		t.ready.add(m)
	default:
		t.finish(n, at, to)
	}
}

// began is when an attempt started: as long ago as it took, by its worker's clock, but never before it was claimed.
func (t *settleCall) startedAt(n *holdfast.Settlement, at heldMember) time.Time {
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
func (t *settleCall) finish(n *holdfast.Settlement, at heldMember, to holdfast.State) {
	e := ending{state: to, worker: at.lease.worker}
	if n.Took > 0 || at.member.started {
		e.started = t.startedAt(n, at)
	}
	switch to {
	case holdfast.Complete:
		e.result = string(n.Result)
	case holdfast.Failed:
		e.failure = n.Failure
	}
	t.finished.add(at.member, e)
	if done, holds := t.unique[n.Job]; holds && !(done && to == holdfast.Complete) {
		t.freedKeys = append(t.freedKeys, n.Job)
	}
}

// weigh finds out about settlements that are not held: said before and obeyed, or late.
func (t *settleCall) checkNotHeld(ctx context.Context) error {
	if len(t.notHeld) == 0 {
		return nil
	}
	var index, job, token column
	for _, i := range t.notHeld {
		index.int(i)
		job.id(t.settlements[i].Job)
		token.int(t.settlements[i].Token)
	}
	for _, i := range t.notHeld {
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
func (t *settleCall) write(ctx context.Context, back *readyPlaces) error {
	p, sql, how := t.p, t.s.sql, ""
	if t.tolerant {
		how = " gently"
	}
	if len(t.finished) < copyThreshold || t.tolerant {
		t.finished.queue(p, sql["finish"+how], t.now)
	} else if err := t.finished.copy(ctx, p, t.now); err != nil {
		return err
	}
	if len(t.attempts) < copyThreshold || t.tolerant {
		t.attempts.queue(p, sql["attempt_add"+how], t.now)
	} else if err := t.attempts.copy(ctx, p, t.now); err != nil {
		return err
	}
	t.merges.queue(p, sql["merge_releases"])
	t.late.queue(p, sql["late_add"], t.now)
	if len(t.ready.job) > 0 {
		t.ready.queue(p, sql["ready_add"+how], timestamp(t.now), back)
	}
	if len(t.later.job) > 0 {
		p.Queue(sql["later_add"+how], append([]any{t.due.String()}, t.later.args()...)...)
	}
	if len(t.cancelledJobs) > 0 {
		p.Queue(sql["cancel_drop"], ids(t.cancelledJobs))
	}
	if len(t.freedKeys) > 0 {
		p.Queue(sql["unique_free"], ids(t.freedKeys))
	}
	t.s.removeMembers(p, t.held, func(m *member) bool { return m.settledTo != "" })
	t.deadlines.queue(p, sql)
	if err := t.writeErrorGroups(ctx); err != nil {
		return err
	}
	t.queueTrendCounts()
	return nil
}
