package postgres

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// Settle ends leases. The first round trip locks the batches and reads everything that the decision depends on; the second writes the results and
// commits. copyThreshold and more rows for one table take another round trip for their COPY.
//
// The fence: a settlement is applied only if its job is a member of its batch, with the same token, while the batch row is locked. Reclaim and manual
// retry change the membership or the token under the same lock, so a worker that has lost its lease cannot change the job.
//
// Settle is safe to repeat. A settlement that was already applied, in this call or an earlier one, gets the same answer again. Any other settlement
// without a lease gets ErrLeaseLost, and is kept as a late settlement.
//
// Jobs that settlements enqueue are written in the same transaction, after everything else. If one of them is refused, the settlements are applied one by one, so
// that only its own is refused.
func (s *Store) Settle(ctx context.Context, settlements []store.Settlement) ([]error, error) {
	if !rule.HasDrafts(settlements) {
		return s.settle(ctx, settlements)
	}
	answers, err := s.settle(ctx, settlements)
	if !rule.IsRefusal(err) {
		return answers, err
	}
	answers = make([]error, len(settlements))
	for i := range settlements {
		one, err := s.settle(ctx, settlements[i:i+1])
		switch {
		case rule.IsRefusal(err):
			answers[i] = rule.RefusedDrafts(settlements[i].Job, err)
		case err != nil:
			return nil, err
		default:
			answers[i] = one[0]
		}
	}
	return answers, nil
}

// settle applies settlements in one transaction. A refusal means that a job that one of them enqueues cannot be enqueued, and that nothing was applied.
func (s *Store) settle(ctx context.Context, settlements []store.Settlement) ([]error, error) {
	answers, batches := checkSettlements(settlements)
	if len(batches) == 0 {
		return answers, nil
	}
	drafts, err := s.prepareDrafts(ctx, settlements, answers)
	if err != nil {
		return nil, err
	}
	checked, tolerant := answers, false
	var to startedLines
	var back []holdfast.ID
	var fresh []entry
	err = s.withRetries(ctx, "settle", true, func(ctx context.Context) error {
		to, back, answers = startedLines{}, nil, slices.Clone(checked)
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
			if err := t.write(ctx, &to); err != nil || drafts == nil {
				return err
			}
			fresh, err = t.enqueueDrafts(ctx, drafts)
			return err
		})
		if drafts != nil && isDuplicate(err) {
			err = s.explainDuplicate(ctx, s.work, fresh, err)
		}
		if !tolerant && isDuplicate(err) {
			tolerant = true
			return errAlreadyFinished
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	s.ends.Settled(settlements)
	s.planner.noteJobs(back...)
	s.announceLines(&to)
	if len(fresh) > 0 {
		s.announceEnqueued(fresh)
	}
	return answers, nil
}

// checkSettlements returns the refusals of settlements that are not valid, and the batches of the others.
func checkSettlements(settlements []store.Settlement) (answers []error, batches []holdfast.ID) {
	answers = make([]error, len(settlements))
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
	return answers, batches
}

// A heldMember is a member of a locked batch.
type heldMember struct {
	lease  *batchRow
	member *member
}

// A settleCall is one attempt at a call of Settle.
type settleCall struct {
	s           *Store
	p           *pipeline
	settlements []store.Settlement
	answers     []error

	now     time.Time
	held    []*batchRow
	cancels map[holdfast.ID]bool
	unique  map[holdfast.ID]bool // jobs with a unique key; true if the key is kept after success
	ordered map[holdfast.ID]bool // jobs with an order key; true if a dead letter holds the line
	notHeld []int                // settlements whose job is not a member of its batch
	drafted []int                // settlements that complete their job and enqueue others

	tolerant        bool // use statements that skip existing rows: a job of this call has a finished row already
	finished        finishedRows
	attempts        attemptRows
	merges          releaseMerges
	late            lateRows
	ready           moveRows
	later           moveRows
	due             column
	freedKeys       []holdfast.ID
	leftLines       []holdfast.ID
	heldLines       []holdfast.ID // dead letters that hold their lines
	cancelledJobs   []holdfast.ID
	deadlines       startDeadlines
	errorGroups     errorGroupCounts
	mayChangeStatus bool // a failure belongs to an error group whose status it may change
	trends          sqltext.TrendCounts
	hasShard        bool // shard is to be released
	shard           int
}

// lockAndRead locks the batches and then reads cancel requests and unique keys: after the locks, so that it sees everything that was committed before
// them.
func (t *settleCall) lockAndRead(ctx context.Context, batches []holdfast.ID) error {
	t.cancels, t.unique, t.ordered = map[holdfast.ID]bool{}, map[holdfast.ID]bool{}, map[holdfast.ID]bool{}
	t.s.queueLockBatches(t.p, &t.held, t.s.sql["batch_lock"], ids(batches))
	t.p.queueRow(t.s.sql["now"], nil, &t.now)
	var id [16]byte
	var done, inLine bool
	t.p.queueRows(t.s.sql["find_cancels_in_batches"], []any{ids(batches)}, []any{&id}, func() error { t.cancels[id] = true; return nil })
	t.p.queueRows(t.s.sql["find_unique_in_batches"], []any{ids(batches)}, []any{&id, &done, &inLine}, func() error {
		if inLine {
			t.ordered[id] = done
		} else {
			t.unique[id] = done
		}
		return nil
	})
	if failed := t.fingerprints(); failed != "" {
		t.p.queueRow(t.s.sql["check_error_status"], []any{failed}, &t.mayChangeStatus)
	}
	return t.p.flush(ctx)
}

// fingerprints returns the fingerprints of all failures in valid settlements.
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

// decide applies the settlements whose lease is held, in order, and collects the others in notHeld.
func (t *settleCall) decide() {
	for i := range t.settlements {
		n := &t.settlements[i]
		if t.answers[i] != nil {
			continue
		}
		at, ok := t.findMember(n)
		switch {
		case n.Token < 0 || n.Token > math.MaxInt32: // no job can have this token
			t.answers[i] = rule.LeaseLost(n.Job)
		case ok && at.member.settledTo == "" && n.Confirm:
			t.answers[i] = rule.NotCommitted(n.Job)
		case ok && at.member.settledTo == "":
			t.apply(n, at)
			if len(n.Enqueue) > 0 && !t.cancels[n.Job] {
				t.drafted = append(t.drafted, i)
			}
		case ok && at.member.settledTo == n.To: // a repeat within this call
		default:
			t.notHeld = append(t.notHeld, i)
		}
	}
}

// findMember returns the member that a settlement is about. ok is false if the batch is gone, the job is not a member, or the token differs.
func (t *settleCall) findMember(n *store.Settlement) (heldMember, bool) {
	for _, l := range t.held {
		if l.id == n.Batch {
			m := l.next(n.Job)
			return heldMember{l, m}, m != nil && m.token == n.Token
		}
	}
	return heldMember{}, false
}

// apply ends one attempt. A cancel request overrules the settlement: the job is cancelled whatever the worker reported.
func (t *settleCall) apply(n *store.Settlement, at heldMember) {
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
	t.trends.Add(n, to)
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

// startedAt returns when an attempt started: the reported duration before now, but not before the claim.
func (t *settleCall) startedAt(n *store.Settlement, at heldMember) time.Time {
	began := t.now.Add(-n.Took)
	if n.Took > 0 && began.Before(at.lease.claimed) {
		return at.lease.claimed
	}
	return began
}

// charge increments the counter that an attempt is charged to, and returns it if it has a maximum.
func (m *member) charge(c store.Charge) int {
	switch c {
	case store.ChargeFailure:
		m.failures++
		return m.failures
	case store.ChargeCrash:
		m.crashes++
		return m.crashes
	case store.ChargeRelease:
		m.releases++
	}
	return 0
}

// finish ends a job and frees its unique key, unless success keeps the key.
func (t *settleCall) finish(n *store.Settlement, at heldMember, to holdfast.State) {
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
	switch holds, ordered := t.ordered[n.Job]; {
	case !ordered:
	case holds && to == holdfast.Failed && !n.Failure.Benign:
		t.heldLines = append(t.heldLines, n.Job)
	default:
		t.leftLines = append(t.leftLines, n.Job)
	}
}

// checkNotHeld decides about settlements without a lease: already applied, or late.
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
			} else if there && !n.Confirm {
				t.late.add(n)
			}
			return nil
		})
		return err
	})
	return t.p.flush(ctx)
}

// write writes everything that was decided. Rows that many settlements contend for come last, so that they are locked for the shortest time: error
// groups, then trend counts.
func (t *settleCall) write(ctx context.Context, back *startedLines) error {
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
		t.ready.queue(p, sql["ready_add"+how], timestamp(t.now), &back.readyPlaces)
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
	if len(t.leftLines) > 0 {
		t.s.leaveLines(p, t.leftLines, back)
	}
	if len(t.heldLines) > 0 {
		p.Queue(sql["order_hold"], ids(t.heldLines))
	}
	t.s.removeMembers(p, t.held, func(m *member) bool { return m.settledTo != "" })
	t.deadlines.queue(p, sql)
	if err := t.writeErrorGroups(ctx); err != nil {
		return err
	}
	t.queueTrendCounts()
	return nil
}
