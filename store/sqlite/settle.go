package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// Settle applies settlements, each independently of the others, all in one transaction. The answers are in the order of
// the settlements: nil if it is applied or was applied before, ErrLeaseLost if the caller's lease has ended, ErrInvalid
// if it cannot be stored. If the second result is not nil, nothing was applied.
func (s *Store) Settle(ctx context.Context, settlements []store.Settlement) ([]error, error) {
	if len(settlements) == 0 {
		return nil, nil
	}
	refused := make([]error, len(settlements))
	for i := range settlements {
		refused[i] = settlements[i].Check()
	}
	answers := make([]error, len(settlements))
	drafted := rule.HasDrafts(settlements)
	if drafted {
		settlements = prepareDrafts(settlements, refused)
	}
	err := s.writer.write(ctx, func(t *tx) error { return settleAll(t, settlements, refused, answers, false) })
	if violatesConstraint(err) || drafted && rule.IsRefusal(err) {
		// A row of one settlement violates a constraint. Apply them again, each in its own savepoint, so that only that
		// settlement is refused.
		err = s.writer.write(ctx, func(t *tx) error { return settleAll(t, settlements, refused, answers, true) })
	}
	if err != nil {
		return nil, err
	}
	s.ends.Settled(settlements)
	if drafted {
		s.noteDrafts(settlements, answers)
	}
	return answers, nil
}

// settleAll applies the settlements that were not refused, and fills in the answers. If carefully, each is applied in
// its own savepoint.
func settleAll(t *tx, settlements []store.Settlement, refused, answers []error, isolated bool) error {
	s := &settler{tx: t, isolated: isolated}
	if _, err := t.one("check_settle_needs", nil, &s.anyCancels, &s.anyUniques, &t.wakeup.allQueues); err != nil { // a settled job frees capacity for jobs behind a limit
		return err
	}
	for i := range settlements {
		if answers[i] = refused[i]; answers[i] != nil {
			continue
		}
		settle := func() (err error) {
			answers[i], err = s.settle(&settlements[i])
			return err
		}
		if !isolated {
			if err := settle(); err != nil {
				return err
			}
			continue
		}
		if err := t.inSavepoint(settle); rule.IsRefusal(err) {
			answers[i] = rule.RefusedDrafts(settlements[i].Job, err)
		} else if violatesConstraint(err) {
			answers[i] = &holdfast.Error{Err: holdfast.ErrInvalid, Message: fmt.Sprintf("the settlement of job %s contradicts stored rows: run `holdfast doctor`", settlements[i].Job), Cause: err}
		} else if err != nil {
			return err
		}
	}
	if err := s.countFailures(); err != nil {
		return err
	}
	return s.saveBatches()
}

// A settler is what the settlements of one call share.
type settler struct {
	*tx
	anyCancels, anyUniques bool             // whether the store has any cancel request, any unique key
	isolated               bool             // each settlement has its own savepoint and writes its rows at once
	overruled              bool             // a cancel request overruled the last settlement
	failures               []countedFailure // failures to count in their error groups
}

// settle applies one settlement if the caller still holds the lease. answer is for the caller; err is the database's.
func (s *settler) settle(x *store.Settlement) (answer, err error) {
	l, m, err := s.heldMember(x.Batch, x.Job, x.Token)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return s.answerLate(x)
	}
	if x.Confirm {
		return rule.NotCommitted(x.Job), nil
	}
	was := *m
	m.removed = true
	if err = s.apply(x, l, m); err == nil && s.isolated {
		err = s.flushRows()
	}
	if err != nil {
		*m = was
		return nil, err
	}
	s.noteFailure(x)
	s.countTrend(x)
	return nil, nil
}

// apply charges the attempt, obeys a cancel request, records the attempt, and moves the job to its next place. The
// statement that finds the cancel request also deletes it, in the transaction that ends the job, so a request is obeyed
// exactly once.
func (s *settler) apply(x *store.Settlement, l *batch, m *member) error {
	switch x.Charge {
	case store.ChargeFailure:
		m.failures++
	case store.ChargeCrash:
		m.crashes++
	case store.ChargeRelease:
		m.releases++
	}
	to, reported := x.To, any(nil)
	s.overruled = false
	if s.anyCancels {
		asked, err := s.exec("cancel_drop", x.Job)
		if err != nil {
			return err
		}
		if asked > 0 {
			to, reported, s.overruled = holdfast.Cancelled, x.To, true
		}
	}
	if to != holdfast.Complete {
		if err := s.recordAttempt(x, l, m, to, reported); err != nil {
			return err
		}
	}
	if to == holdfast.Queued {
		return s.returnToQueue(x, m)
	}
	return s.finish(x, l, m, to)
}

// began returns when an attempt started: as long ago as it took by the worker's clock, but never before it was claimed.
func (s *settler) began(x *store.Settlement, l *batch) int64 {
	if x.Took == 0 {
		return s.now
	}
	return max(s.at(-x.Took), l.claimed)
}

// returnToQueue makes a job claimable again, at once or after its delay. The token keeps its value; the next claim
// raises it.
func (s *settler) returnToQueue(x *store.Settlement, m *member) error {
	place := "return_to_later"
	if x.Delay <= 0 {
		place, s.wakeup.allQueues = "return_to_ready", true
	}
	if x.StartWithin > 0 {
		if err := s.addRow("deadline_add", s.at(x.StartWithin), &x.Job, x.Token); err != nil {
			return err
		}
	}
	return s.addRow(place, &x.Job, x.Token, m.failures, m.crashes, m.releases, m.generation, s.at(x.Delay))
}

// finish ends the generation of a job, and frees its unique key.
func (s *settler) finish(x *store.Settlement, l *batch, m *member, to holdfast.State) (err error) {
	var started, result any
	if x.Took > 0 || m.started {
		m.began = s.began(x, l)
		started = &m.began
	}
	if len(x.Result) > 0 {
		result = x.Result
	}
	switch to {
	case holdfast.Complete:
		err = s.addRow("finish_complete", &x.Job, x.Token, m.failures, m.crashes, m.releases, m.generation, started, &s.now, &l.worker, result)
	case holdfast.Failed:
		var off any // when it was discarded; a benign failure is never a dead letter
		if x.Failure.Benign {
			off = s.now
		}
		err = s.addRow("finish", x.Job, x.Token, m.failures, m.crashes, m.releases, m.generation, started, s.now, to, l.worker,
			clean(x.Failure.Code), nullIfEmpty(clean(x.Failure.Fingerprint)), off, x.Failure.Benign)
	default:
		err = s.addRow("finish", x.Job, x.Token, m.failures, m.crashes, m.releases, m.generation, started, s.now, to, l.worker, nil, nil, nil, false)
	}
	s.emit(string(to), &x.Job, x.Token)
	if err == nil && s.anyUniques {
		_, err = s.exec("unique_free", x.Job, to == holdfast.Complete)
	}
	if err == nil && len(x.Enqueue) > 0 && to == holdfast.Complete {
		err = s.enqueueDrafts(x)
	}
	return err
}

// recordAttempt writes the attempt's row.
func (s *settler) recordAttempt(x *store.Settlement, l *batch, m *member, to holdfast.State, reported any) error {
	var count int
	var due any
	switch x.Charge {
	case store.ChargeFailure:
		count = m.failures
	case store.ChargeCrash:
		count = m.crashes
	}
	if to == holdfast.Queued {
		due = s.at(x.Delay)
		s.emitReturn(&x.Job, x.Token, x.Charge)
	}
	args := []any{&x.Job, x.Token, m.generation, l.attemptWorker(), s.began(x, l), &s.now, to, nullIfEmpty(string(x.Charge)), count, x.Limit, due}
	if err := s.addRow("attempt_add", append(append(args, failureColumns(x.Failure)...), nullIfEmpty(clean(x.Why)), reported)...); err != nil {
		return err
	}
	if to == holdfast.Queued && x.Charge == store.ChargeRelease && m.releases > sqltext.KeptReleases {
		return s.mergeReleases(x)
	}
	return nil
}

// mergeReleases merges a released attempt with the released attempt before it, so that a job that is released ten
// thousand times has a short history: the older row is deleted and the new one counts it.
func (s *settler) mergeReleases(x *store.Settlement) error {
	if err := s.flushRows(); err != nil {
		return err
	}
	var repeats int
	var since int64
	there, err := s.one("take_released_attempt", []any{x.Job, x.Token - 1}, &repeats, &since)
	if err != nil || !there {
		return err
	}
	_, err = s.exec("merge_releases", x.Job, x.Token, repeats+1, since)
	return err
}

// emitReturn emits the event of an attempt after which the job is queued again: released if it was released, retry
// otherwise.
func (t *tx) emitReturn(job *holdfast.ID, token int, charge store.Charge) {
	name := store.EventRetry
	if charge == store.ChargeRelease {
		name = store.EventReleased
	}
	t.emit(name, job, token)
}

// failureColumns returns code, category, message, detail, context, dependency, fingerprint and benign of a failure, in
// storable form.
func failureColumns(f *holdfast.Failure) []any {
	if f == nil {
		return []any{nil, nil, nil, nil, nil, nil, nil, false}
	}
	var about any
	if len(f.Context) > 0 {
		cleaned := make(map[string]string, len(f.Context))
		for name, value := range f.Context {
			cleaned[clean(name)] = clean(value)
		}
		text, _ := json.Marshal(cleaned) // strings always marshal
		about = string(text)
	}
	return []any{clean(f.Code), nullIfEmpty(clean(f.Category)), nullIfEmpty(clean(f.Message)), nullIfEmpty(clean(f.Detail)), about, nullIfEmpty(clean(f.Dependency)),
		nullIfEmpty(clean(f.Fingerprint)), f.Benign}
}

// answerLate answers a settlement whose lease is not held. The answer is nil if the same settlement was applied before:
// the caller may not have received the first answer and may repeat it safely. Otherwise the answer is ErrLeaseLost, and
// the settlement is kept as evidence without effect.
func (s *settler) answerLate(x *store.Settlement) (answer, err error) {
	if err := s.flushRows(); err != nil { // it may have been applied in this call
		return nil, err
	}
	if applied, err := s.one("find_settled", []any{x.Job, x.Token, x.To}); applied || err != nil {
		return nil, err
	}
	if x.Confirm {
		return rule.LeaseLost(x.Job), nil
	}
	args := []any{x.Job, x.Token, x.To, s.now, x.Took.Microseconds(), nullIfEmpty(string(x.Charge))}
	if _, err := s.exec("late_add", append(append(args, failureColumns(x.Failure)...), nullIfEmpty(clean(x.Why)))...); err != nil {
		return nil, err
	}
	return rule.LeaseLost(x.Job), nil
}

// saveBatches writes the batches from which members were settled.
func (s *settler) saveBatches() error {
	for _, l := range s.batches {
		if slices.ContainsFunc(l.members, func(m member) bool { return m.removed }) {
			if err := s.saveBatch(l); err != nil {
				return err
			}
		}
	}
	return nil
}
